// Package adapter holds what the monitor and the groups share: results of tests, the events that carry them, and the
// interfaces between the two sides. It decides nothing.
package adapter

import (
	"context"
	"time"
)

// State says what the monitor knows of an outbound with one set of test settings (SPEC S2.4).
type State uint8

const (
	// StateUntested has no result: not from this run, not from the cache.
	StateUntested State = iota
	// StateCached has a result of an earlier run and was not tested since.
	StateCached
	// StateUp answered in this run; with `fall` above 1 its last tests may have failed.
	StateUp
	// StateDown failed; with `rise` above 1 its last tests may have succeeded.
	StateDown
)

// String names the state in the words of a status.
func (s State) String() string {
	switch s {
	case StateCached:
		return "cached"
	case StateUp:
		return "up"
	case StateDown:
		return "down"
	default:
		return "untested"
	}
}

// Result is what is known of one outbound.
type Result struct {
	State State
	// Delay of the last successful test, in milliseconds, 1 to 65534. It means something in StateCached and StateUp.
	Delay uint16
	// Tested is when the last test ended; for a cached result, in the earlier run.
	Tested time.Time
	// Since is when State began.
	Since time.Time
	// Reason of the last failure, one line, empty after a success.
	Reason string
}

// EventKind tells what an Event reports.
type EventKind uint8

const (
	// EventResult: a test of Tag ended. Result is what is known now, Failed whether this very test failed, Round
	// whether it belonged to a round.
	EventResult EventKind = iota
	// EventRetest: the test that a failed dial asked for (S5.3) has begun, or, with Ended, is over.
	EventRetest
	// EventRoundStart: a round begins; Held says that groups keep their choice during it (S7.1, S7.4).
	EventRoundStart
	// EventRoundEnd: every test of the round has ended; Answered says whether any of them succeeded (S2.5a).
	EventRoundEnd
	// EventReach: what a nested group leads to may have changed (S5.4).
	EventReach
	// EventStarted: the box has started (S2.5, S6.1b).
	EventStarted
)

// Event is one thing that groups are told by the monitor, in the order in which it happened.
type Event struct {
	Kind     EventKind
	Tag      string
	Result   Result
	Failed   bool
	Round    bool
	Held     bool
	Answered bool
	Ended    bool
}

// Subscriber is a group as the monitor sees it.
type Subscriber interface {
	// Tag of the group.
	Tag() string
	// Deliver takes an event. It must not block.
	Deliver(event Event)
}

// Monitor tests outbounds and tells groups (SPEC S2). It is one group's side of the box's monitor, with the settings that
// apply to that group (S2.1a).
type Monitor interface {
	// Subscribe adds the group; what it reaches is tested from the next round on. The returned function ends it.
	Subscribe(group Subscriber) (unsubscribe func())
	// Result of an outbound; StateUntested for an unknown tag.
	Result(tag string) Result
	// Test has everything that a group reaches tested at once, outside a round (S2.3). It returns the tags when all are
	// done or ctx ends.
	Test(ctx context.Context, group string) (tested []string)
	// DialFailed reports that opening a connection through an outbound failed, so that it is tested at once (S5.3).
	// It never blocks.
	DialFailed(tag string)
	// Touch reports traffic through a group (S1.4, `idle_timeout`); a test's own connections, which ctx tells, are none.
	// It takes no lock.
	Touch(ctx context.Context)
	// Refresh takes in what others put into sing-box's storage of results (S2.2).
	Refresh()
	// Reselected tells the box that the group's choice changed, so that groups around it see it at once.
	Reselected()
	// NetworkChanged ends the tests in progress and starts a round (S2.5).
	NetworkChanged()
	// DebounceWindow is the time within which the group applies events together (S1.4).
	DebounceWindow() time.Duration
}
