package balancer

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"tarazu/adapter"
)

// group is the goroutine that owns a group's state: events in, snapshots and closings out. It decides nothing itself.
type group struct {
	config  config
	window  time.Duration // SPEC S1.4, `debounce_window`
	current atomic.Pointer[snapshot]
	// translate appends what happened to members, by what the monitor tells; nothing where it does not concern the group.
	translate func(events []event, told adapter.Event) []event
	// perform carries out what a decision wants done, after its snapshot is there for new connections.
	perform func(actions actions)

	access   sync.Mutex
	mailbox  []adapter.Event
	patience patience
	letter   chan struct{}
	// settles are asked for by groups around this one.
	settles chan chan struct{}
	state   state
	done    chan struct{}
}

func newGroup(config config, window time.Duration) *group {
	return &group{config: config, window: window, letter: make(chan struct{}, 1), settles: make(chan chan struct{}), done: make(chan struct{})}
}

// begin makes the first decision, so that a snapshot is there before the first connection, and returns when the next
// is due.
func (g *group) begin(initial state) (wake time.Time) {
	g.state = initial
	return g.decide(nil, causeEvent, time.Now())
}

// patience says which events need not wake the goroutine, because it has a decision before it for which they are in
// time: with a thousand members in twenty groups, waking for each result costs more than all decisions.
type patience uint8

const (
	noPatience   patience = iota
	forRounds             // successes of a round
	forSuccesses          // and those of other tests
)

// deliver takes an event from the monitor. It never blocks.
func (g *group) deliver(event adapter.Event) {
	g.access.Lock()
	g.mailbox = append(g.mailbox, event)
	inTime := event.Kind == adapter.EventResult && !event.Failed && (g.patience == forSuccesses || g.patience == forRounds && event.Round)
	g.access.Unlock()
	if !inTime {
		g.wake()
	}
}

func (g *group) wake() {
	select {
	case g.letter <- struct{}{}:
	default:
	}
}

// rest is called before the goroutine sleeps. A letter that arrived meanwhile, and may count on it being awake, wakes it.
func (g *group) rest(patience patience) {
	g.access.Lock()
	defer g.access.Unlock()
	g.patience = patience
	if len(g.mailbox) > 0 {
		g.wake()
	}
}

// take empties the mailbox; read is the space of letters that were taken before.
func (g *group) take(read []adapter.Event) []adapter.Event {
	g.access.Lock()
	defer g.access.Unlock()
	letters := g.mailbox
	g.mailbox = read[:0]
	return letters
}

// run owns the state until ctx ends.
func (g *group) run(ctx context.Context, wake time.Time) {
	defer close(g.done)
	pending := batch{window: g.window}
	timer := time.NewTimer(0)
	defer timer.Stop()
	var letters []adapter.Event
	var events []event
	for {
		at := earliest(wake, pending.due)
		timer.Stop()
		if !at.IsZero() {
			timer.Reset(time.Until(at))
		}
		g.rest(pending.patience())
		var settled chan struct{}
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-g.letter:
		case settled = <-g.settles:
		}
		now := time.Now()
		letters = g.take(letters)
		for _, letter := range letters {
			events = g.translate(events[:0], letter)
			for _, event := range events {
				pending.add(event, urgencyOf(event, g.state), now)
				if event.kind == eventRoundEnd {
					// S7.1: the choice at a round's end is made with this round's results and nothing later.
					wake = g.decide(pending.take(now), causeEvent, now)
				}
			}
		}
		if settled != nil {
			pending.add(event{kind: eventSettle}, atOnce, now)
		}
		if due := pending.ready(now); due != nil {
			wake = g.decide(due, causeEvent, now)
		} else if !wake.IsZero() && !now.Before(wake) {
			wake = g.decide(nil, causeTick, now)
		}
		if settled != nil {
			close(settled)
		}
	}
}

func (g *group) decide(events []event, why cause, now time.Time) (wake time.Time) {
	var actions actions
	g.state, actions = decide(g.config, g.state, events, why, now)
	g.current.Store(actions.snapshot)
	g.perform(actions)
	return actions.wake
}

func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// settle returns when the group has decided with everything that it was told before. Only a group around it may ask, so
// that none waits for itself.
func (g *group) settle() {
	settled := make(chan struct{})
	select {
	case g.settles <- settled:
		<-settled
	case <-g.done:
	}
}

// urgency is how long an event may wait for others.
type urgency uint8

const (
	// atWindow: applied together with what else arrives within the window, counted from the first of them.
	atWindow urgency = iota
	// soon: applied at once, but at most once per window.
	soon
	// atOnce: applied without waiting.
	atOnce
)

// urgencyOf returns how long an event may wait. A decision for a thousand members costs, so results of a round wait for
// each other (S7.4); what someone waits for does not (S2.3, S3.7, S7.2).
func urgencyOf(event event, state state) urgency {
	switch event.kind {
	case eventRoundEnd, eventSuspect, eventStarted, eventMoved:
		return atOnce
	case eventCleared:
		return soon
	case eventResult:
		for n := range networks {
			if event.failed && state.networks[n].selected == event.member {
				return atOnce // S3.7
			}
		}
		if !event.round || event.failed {
			return soon
		}
	}
	return atWindow
}

// batch collects events until they are due.
type batch struct {
	window time.Duration
	events []event
	spare  []event // the space of those taken before
	due    time.Time
	taken  time.Time
}

func (b *batch) add(event event, urgency urgency, now time.Time) {
	b.events = append(b.events, event)
	due := now.Add(b.window)
	switch urgency {
	case atOnce:
		due = now
	case soon:
		due = b.taken.Add(b.window)
		if due.Before(now) {
			due = now
		}
	}
	b.due = earliest(b.due, due)
}

// patience is that of a group with this batch before it.
func (b *batch) patience() patience {
	switch {
	case b.due.IsZero():
		return noPatience
	case b.due.After(b.taken.Add(b.window)):
		return forRounds
	default:
		return forSuccesses
	}
}

// ready returns the events if they are due, else nil.
func (b *batch) ready(now time.Time) []event {
	if b.due.IsZero() || now.Before(b.due) {
		return nil
	}
	return b.take(now)
}

// take returns the events, until it is called again.
func (b *batch) take(now time.Time) []event {
	b.events, b.spare = b.spare[:0], b.events
	b.due, b.taken = time.Time{}, now
	return b.spare
}
