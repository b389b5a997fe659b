package balancer

import (
	"slices"
	"time"

	"tarazu/adapter"
	"tarazu/option"
)

// network tells the two kinds of traffic apart, which are decided apart (S3.3).
type network uint8

const (
	networkTCP network = iota
	networkUDP
	networks
)

// config is what does not change in the life of a group.
type config struct {
	strategy strategy
	// ratio is `delay_acceptable_ratio` (S3.2).
	ratio float64
	// smoothing is the weight of the newest delay in the average that ranks members; 1 is off (S8.2).
	smoothing float64
	// slowStart is how long a member that came back takes to get its full share; 0 is off (S1.1).
	slowStart time.Duration
}

func newConfig(strategy strategy, options option.BalancerOutboundOptions) config {
	c := config{strategy: strategy, ratio: options.DelayAcceptableRatio, smoothing: 1, slowStart: time.Duration(options.SlowStart)}
	if c.ratio == 0 {
		c.ratio = 2
	}
	if options.Smoothing != nil {
		c.smoothing = *options.Smoothing
	}
	return c
}

// state is everything that a group knows. decide returns a new one and changes none.
type state struct {
	members []member
	round   bool
	held    bool
	// started is when the box had started; settled says that the one clean-up after it was done (S6.1b).
	started  time.Time
	settled  bool
	networks [networks]networkState
	// shown is the member that Now names where the strategy has no selection (S5.4).
	shown int
	// unsaid are members that went down in the round in progress, in which nobody has answered yet: if nobody does, it is
	// hardly their fault, and the monitor says it in one line (S2.5a).
	unsaid []note
}

type networkState struct {
	memory   memory
	selected int
}

// member is one entry of the group's list.
type member struct {
	tag    string
	weight int
	// udp says whether it carries UDP; a nested group's answer can change.
	udp     bool
	result  adapter.Result
	average float64   // of the delays since it is up (S8.2)
	back    time.Time // when it came back, zero if it was never down
	tested  bool      // in the round in progress
	suspect bool      // a failed dial's test is running (S5.3)
}

// take gives the member a new result.
func (m *member) take(result adapter.Result, failed bool, smoothing float64, now time.Time) {
	switch {
	case result.State != adapter.StateUp || failed:
	case m.result.State != adapter.StateUp:
		m.average = float64(result.Delay)
		if m.result.State == adapter.StateDown {
			m.back = now
		}
	default:
		m.average += smoothing * (float64(result.Delay) - m.average)
	}
	m.result = result
}

// eventKind tells what an event reports to the deciding functions.
type eventKind uint8

const (
	eventResult     eventKind = iota // a test of the member ended
	eventMoved                       // a nested group leads elsewhere: the member has the result of what it leads to now
	eventSuspect                     // a failed dial's test began
	eventCleared                     // and ended
	eventRoundStart                  // with held
	eventRoundEnd
	eventStarted // the box has started
	eventSettle  // a group around this one wants to know the choice
)

// event is what happened, in terms of the group.
type event struct {
	kind   eventKind
	member int
	result adapter.Result
	udp    bool
	failed bool
	round  bool
	held   bool
	// answered says of a round that ended whether any test succeeded.
	answered bool
}

// actions is what a decision wants done.
type actions struct {
	snapshot *snapshot
	closings []closing
	notes    []note
	// reselected says that a group around this one may have to choose anew.
	reselected bool
	// wake is when to decide again although nothing arrives; zero for never.
	wake time.Time
}

// closing names connections that a rule closes: those of a member on some networks.
type closing struct {
	member   int
	networks [networks]bool
	rule     string
}

// settleAfter is when the connections that the group no longer uses are closed, once (S6.1b).
const settleAfter = 30 * time.Second

// newState is a group before its first decision.
func newState(members []member) state {
	s := state{members: members, shown: noMember}
	for i := range members {
		members[i].average = float64(members[i].result.Delay)
	}
	for n := range s.networks {
		s.networks[n].selected = noMember
	}
	return s
}

// decide applies events in their order and decides once for all of them. It is a pure function of its arguments, but
// for the turns that connections take meanwhile. A batch holds at most one eventRoundEnd, as its last.
func decide(config config, before state, events []event, why cause, now time.Time) (state, actions) {
	after := before
	after.members = slices.Clone(before.members)
	var result actions
	for _, event := range events {
		after.apply(event, config, now, &result)
		if event.kind == eventRoundEnd {
			why = causeRoundEnd
		}
	}
	current := &snapshot{members: after.members}
	choices := [networks]choice{}
	views := after.views(config, why, now)
	for n, view := range views {
		n := network(n)
		choices[n] = config.strategy.choose(view, after.networks[n].memory)
		if choices[n].uses == nil {
			choices[n].uses = view.alive
		}
		after.note(n, choices[n], &result)
		after.networks[n] = networkState{memory: choices[n].memory, selected: choices[n].selected}
		current.pickers[n] = choices[n].picker
		current.reserves = choices[n].reserves
		result.wakeAt(choices[n].wake, now)
		result.wakeAt(view.wake, now)
	}
	current.carriesUDP = after.carriesUDP()
	after.shown = shownMember(after, views[networkTCP])
	current.shown = max(after.shown, 0) // the first while nothing is known
	result.reselected = after.shown != before.shown || after.carriesUDP() != before.carriesUDP()
	after.settle(choices, now, &result)
	result.snapshot = current
	return after, result
}

// apply takes in one event.
func (s *state) apply(event event, config config, now time.Time, result *actions) {
	switch event.kind {
	case eventRoundStart:
		s.round, s.held = true, event.held
		for i := range s.members {
			s.members[i].tested = false
		}
	case eventRoundEnd:
		s.round, s.held = false, false
		if event.answered {
			result.notes = append(result.notes, s.unsaid...)
		}
		s.unsaid = nil
	case eventStarted:
		s.started = now
	case eventSuspect:
		s.members[event.member].suspect = true
	case eventCleared:
		s.members[event.member].suspect = false
	case eventMoved:
		member := &s.members[event.member]
		if state := event.result.State; state != member.result.State && (state == adapter.StateUp || state == adapter.StateDown) {
			result.notes = append(result.notes, note{member: event.member, result: event.result})
		}
		member.result, member.udp = event.result, event.udp
		member.average = float64(event.result.Delay)
	case eventResult:
		member := &s.members[event.member]
		s.noteState(event, result)
		member.take(event.result, event.failed, config.smoothing, now)
		member.suspect = false
		member.tested = member.tested || event.round
		if event.failed && event.result.State == adapter.StateDown {
			// S6.1a: the connections of a member whose test failed, and no others'.
			result.closings = append(result.closings, closing{event.member, [networks]bool{true, true}, "S6.1a"})
		}
	}
}

// settle closes, once, the connections on members that the group no longer uses: 30 s after start, or at the first
// decision after that with a fresh result (S6.1b).
func (s *state) settle(choices [networks]choice, now time.Time, result *actions) {
	if s.settled || s.started.IsZero() {
		return
	}
	if due := s.started.Add(settleAfter); now.Before(due) {
		result.wakeAt(due, now)
		return
	}
	if !slices.ContainsFunc(s.members, func(m member) bool { return m.result.State == adapter.StateUp }) {
		return
	}
	s.settled = true
	for index := range s.members {
		unused := closing{member: index, rule: "S6.1b"}
		for n := range networks {
			unused.networks[n] = !choices[n].uses(index)
		}
		if unused.networks != [networks]bool{} {
			result.closings = append(result.closings, unused)
		}
	}
}

func (a *actions) wakeAt(at, now time.Time) {
	if at.After(now) && (a.wake.IsZero() || at.Before(a.wake)) {
		a.wake = at
	}
}
