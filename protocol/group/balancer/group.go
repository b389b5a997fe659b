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
	// translate turns what the monitor tells into what happened to members; nil for what does not concern the group.
	translate func(event adapter.Event) []event
	// perform carries out what a decision wants done, after its snapshot is there for new connections.
	perform func(actions actions)

	access  sync.Mutex
	mailbox []adapter.Event
	letter  chan struct{}
	state   state
	done    chan struct{}
}

func newGroup(config config, window time.Duration) *group {
	return &group{config: config, window: window, letter: make(chan struct{}, 1), done: make(chan struct{})}
}

// begin makes the first decision, so that a snapshot is there before the first connection, and returns when the next
// is due.
func (g *group) begin(initial state) (wake time.Time) {
	g.state = initial
	return g.decide(nil, causeEvent, time.Now())
}

// deliver takes an event from the monitor. It never blocks.
func (g *group) deliver(event adapter.Event) {
	g.access.Lock()
	g.mailbox = append(g.mailbox, event)
	g.access.Unlock()
	select {
	case g.letter <- struct{}{}:
	default:
	}
}

func (g *group) take() []adapter.Event {
	g.access.Lock()
	defer g.access.Unlock()
	letters := g.mailbox
	g.mailbox = nil
	return letters
}

// run owns the state until ctx ends.
func (g *group) run(ctx context.Context, wake time.Time) {
	defer close(g.done)
	pending := batch{window: g.window}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		at := earliest(wake, pending.due)
		timer.Stop()
		if !at.IsZero() {
			timer.Reset(time.Until(at))
		}
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-g.letter:
		}
		for _, letter := range g.take() {
			for _, event := range g.translate(letter) {
				pending.add(event, urgencyOf(event, g.state), time.Now())
				if event.kind == eventRoundEnd {
					// S7.1: the choice at a round's end is made with this round's results and nothing later.
					wake = g.decide(pending.take(time.Now()), causeEvent, time.Now())
				}
			}
		}
		now := time.Now()
		if events := pending.ready(now); events != nil {
			wake = g.decide(events, causeEvent, now)
		} else if !wake.IsZero() && !now.Before(wake) {
			wake = g.decide(nil, causeTick, now)
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

// ready returns the events if they are due, else nil.
func (b *batch) ready(now time.Time) []event {
	if b.due.IsZero() || now.Before(b.due) {
		return nil
	}
	return b.take(now)
}

func (b *batch) take(now time.Time) []event {
	events := b.events
	b.events, b.due, b.taken = nil, time.Time{}, now
	return events
}
