package balancer

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"tarazu/adapter"
	"tarazu/option"

	"pgregory.net/rapid"
)

// run drives a strategy and its model with the same events.
type run struct {
	t      *rapid.T
	config config
	state  state
	wake   time.Time
	now    time.Time
	world  [networks]*world
	models [networks]model
	picker [networks]picker
	told   []string
}

func newRun(t *rapid.T, name string) *run {
	options := option.BalancerOutboundOptions{Strategy: name, Pool: rapid.IntRange(1, 5).Draw(t, "pool")}
	if name == option.StrategyPool && rapid.Bool().Draw(t, "moves for speed") {
		options.Tolerance, options.ToleranceRatio = new(50), new(0.1)
	}
	r := &run{t: t, now: time.Unix(1_000_000_000, 0)}
	members := make([]member, rapid.IntRange(1, 7).Draw(t, "members"))
	for n := range networks {
		r.world[n] = &world{members: make([]known, len(members))}
	}
	carriers := 0
	for i := range members {
		it := known{
			state:  rapid.SampledFrom([]adapter.State{adapter.StateUntested, adapter.StateCached}).Draw(t, "known at start"),
			delay:  rapid.IntRange(1, 60000).Draw(t, "cached"),
			weight: 1 << rapid.IntRange(0, 3).Draw(t, "weight"), // powers of two: the model's fractions are exact
			udp:    rapid.Bool().Draw(t, "UDP"),
		}
		members[i] = member{tag: fmt.Sprint("member ", i), weight: it.weight, udp: it.udp}
		if it.state == adapter.StateCached {
			members[i].result = adapter.Result{State: it.state, Delay: uint16(it.delay)}
		}
		if it.udp {
			carriers++
		}
		for n := range networks {
			r.world[n].members[i] = it
		}
	}
	for n := range networks {
		for i := range members {
			if n == networkTCP || carriers == 0 || members[i].udp {
				r.world[n].considered = append(r.world[n].considered, i)
			}
		}
		slots := min(options.Pool, len(r.world[n].considered))
		r.models[n] = modelOf(name, options, pool{tag: "group"}.slotRing(slots))
	}
	strategy := newStrategy(setting{options: options, tag: "group", members: members, loads: make([]load, len(members)), random: rand.IntN})
	r.config, r.state = newConfig(strategy, options), newState(members)
	r.decide(causeEvent)
	return r
}

// decide has both decide, and compares connections.
func (r *run) decide(why cause, events ...event) {
	var actions actions
	r.state, actions = decide(r.config, r.state, events, why, r.now)
	r.wake = actions.wake
	if len(events) > 0 && events[len(events)-1].kind == eventRoundEnd {
		why = causeRoundEnd
	}
	for n := range networks {
		r.picker[n] = actions.snapshot.pickers[n]
		for _, event := range events {
			r.world[n].apply(event)
		}
		r.world[n].now = r.now
		r.models[n].decide(r.world[n], why)
	}
	r.compare()
}

func (w *world) apply(event event) {
	it := &w.members[event.member]
	switch event.kind {
	case eventResult:
		it.state, it.suspect = event.result.State, false
		if it.state == adapter.StateUp {
			it.delay = int(event.result.Delay)
		}
		it.tested = it.tested || event.round
	case eventSuspect:
		it.suspect = true
	case eventCleared:
		it.suspect = false
	case eventRoundStart:
		w.round, w.held = true, event.held
		for i := range w.members {
			w.members[i].tested = false
		}
	case eventRoundEnd:
		w.round, w.held = false, false
	}
}

func (r *run) compare() {
	for range rapid.IntRange(0, 9).Draw(r.t, "connections") {
		n := network(rapid.IntRange(0, int(networks)-1).Draw(r.t, "network"))
		key := rapid.Uint64().Draw(r.t, "key")
		if found, expected := r.picker[n].pick(key), r.models[n].pick(r.world[n], key); found != expected {
			r.t.Fatalf("network %d, key %d: member %d, not %d, after\n%v\n%+v", n, key, found, expected, strings.Join(r.told, "\n"), r.world[n])
		} else {
			r.told = append(r.told, fmt.Sprintf("network %d, key %d: member %d", n, key, found))
		}
	}
}

// pass lets time pass. Both decide again when they have to by themselves: the strategy by its wake, the model by its own.
func (r *run) pass(d time.Duration) {
	end := r.now.Add(d)
	for {
		next := r.wake
		for n := range networks {
			if due := r.models[n].due(); due.After(r.now) {
				next = earliest(next, due)
			}
		}
		if next.IsZero() || next.After(end) {
			break
		}
		ticks := r.wake.Equal(next)
		r.now = next
		if ticks {
			r.decide(causeTick)
			continue
		}
		for n := range networks {
			r.world[n].now = r.now
			r.models[n].decide(r.world[n], causeTick)
		}
		r.compare()
	}
	r.now = end
}

func (r *run) event() event {
	e := event{member: rapid.IntRange(0, len(r.state.members)-1).Draw(r.t, "member"), round: r.state.round}
	switch rapid.IntRange(0, 7).Draw(r.t, "event") {
	case 0:
		e.kind = eventSuspect
	case 1:
		e.kind = eventCleared
	case 2, 3:
		e.failed, e.result.State = true, adapter.StateDown
	default:
		// Few delays, so that they often are equal or just at a threshold.
		e.result = adapter.Result{State: adapter.StateUp, Delay: rapid.SampledFrom([]uint16{1, 50, 51, 100, 150, 151, 200, 201, 500, 550, 556, 60000}).Draw(r.t, "delay")}
	}
	return e
}

func (r *run) step() {
	switch rapid.IntRange(0, 5).Draw(r.t, "step") {
	case 0:
		d := rapid.SampledFrom([]time.Duration{1, testWindow, 30*time.Second - 1, 30 * time.Second, time.Minute}).Draw(r.t, "time")
		r.told = append(r.told, fmt.Sprint("pass ", d))
		r.pass(d)
		return
	case 1:
		e := event{kind: eventRoundStart, held: rapid.Bool().Draw(r.t, "held")}
		if r.state.round {
			e.kind, e.held = eventRoundEnd, false
		}
		r.told = append(r.told, fmt.Sprintf("%+v", e))
		r.decide(causeEvent, e)
		return
	}
	var events []event
	for range rapid.IntRange(1, 4).Draw(r.t, "at once") {
		events = append(events, r.event())
	}
	r.told = append(r.told, fmt.Sprintf("%+v", events))
	r.decide(causeEvent, events...)
}

// Whatever happens, each connection gets the member that the model gives it.
func TestStrategies_LikeTheirModels(t *testing.T) {
	for _, name := range []string{
		option.StrategyPool, option.StrategyLowestDelay, option.StrategyFailover, option.StrategyRoundRobin,
	} {
		t.Run(name, rapid.MakeCheck(func(t *rapid.T) {
			r := newRun(t, name)
			for range rapid.IntRange(1, 40).Draw(t, "steps") {
				r.step()
			}
		}))
	}
}
