package monitoring

import (
	"context"
	"sync"
	"time"

	"tarazu/adapter"
	"tarazu/option"

	"github.com/sagernet/sing/common/logger"
)

// Monitor tests outbounds with one set of settings, each once per round however many groups list it (SPEC S2.1), and
// has its judges tell the groups. This file is its life and its network; rounds.go runs the rounds, flight.go the tests.
type Monitor struct {
	// settings of the tests; Rise, Fall and DebounceWindow are the groups' own and zero here.
	settings option.MonitoringSettings
	// targets returns the tags to test, in configuration order; asked anew for each round.
	targets func(groups []string) []string
	// probe makes one test. It returns when ctx ends.
	probe func(ctx context.Context, tag string) (time.Duration, error)
	// applied is told of every outcome, and saved of every end of a round and of the monitor (S2.8); access is held for
	// the first. Both may be nil.
	applied func(tag string)
	saved   func()
	logger  logger.Logger
	traffic *traffic

	access  sync.Mutex
	judges  []*judge
	latest  map[string]success // by tag, of outbounds whose last test succeeded
	retests map[string]retests
	flights map[string]*flight
	count   count // of the round in progress
	mute    bool  // it was said that no member answers (S2.5a)
	life    context.Context
	end     context.CancelFunc
	// network ends when the network changes or is paused, and with it its tests; nil while there is none.
	network context.Context
	leave   context.CancelFunc
	paused  bool
	changed chan struct{} // the network did, or is there again
	tasks   sync.WaitGroup
	outside chan struct{} // slots for tests outside a round
}

// success is an outbound's last test, if it succeeded.
type success struct {
	delay uint16
	at    time.Time
}

// count of outcomes in a round.
type count struct {
	answers, failures int
	reason            string // of the first failure
}

func newMonitor(settings option.MonitoringSettings, traffic *traffic, logger logger.Logger) *Monitor {
	return &Monitor{
		settings: settings,
		logger:   logger,
		traffic:  traffic,
		latest:   make(map[string]success),
		retests:  make(map[string]retests),
		flights:  make(map[string]*flight),
		outside:  make(chan struct{}, settings.Workers),
		changed:  make(chan struct{}, 1),
	}
}

// start begins the rounds; the first is not held (S7.4).
func (m *Monitor) start(ctx context.Context) {
	m.access.Lock()
	defer m.access.Unlock()
	m.life, m.end = context.WithCancel(ctx)
	if !m.paused {
		m.join()
	}
	m.tell(adapter.Event{Kind: adapter.EventStarted})
	m.tasks.Go(func() { m.rounds(m.life) })
}

// closePatience is how long close waits for tests that it cancelled.
const closePatience = 500 * time.Millisecond

// close cancels every test and waits for what runs them, but not for a member that does not let go (S2.7).
func (m *Monitor) close() {
	m.access.Lock()
	if m.life == nil || m.life.Err() != nil {
		m.access.Unlock()
		return
	}
	m.end()
	m.access.Unlock()
	ended := make(chan struct{})
	go func() {
		m.tasks.Wait()
		close(ended)
	}()
	timer := time.NewTimer(closePatience)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
		m.logger.Warn("tests did not end when the monitor was closed")
	}
}

// join begins on a network; access is held.
func (m *Monitor) join() {
	m.network, m.leave = context.WithCancel(m.life)
}

// leaveNetwork ends the tests in progress; their outcomes are nobody's (S2.5). With pause no other begins until resume,
// also before start.
func (m *Monitor) leaveNetwork(pause bool) {
	m.access.Lock()
	defer m.access.Unlock()
	m.paused = m.paused || pause
	if m.network != nil {
		m.leave()
		m.network = nil
	}
	if !m.paused {
		m.signal()
	}
}

// resume starts a round on the network that is there again.
func (m *Monitor) resume() {
	m.access.Lock()
	defer m.access.Unlock()
	if m.paused {
		m.paused = false
		m.signal()
	}
}

func (m *Monitor) signal() {
	select {
	case m.changed <- struct{}{}:
	default:
	}
}

// tell delivers an event to all groups, in the order in which things happen: access is held.
func (m *Monitor) tell(event adapter.Event) {
	for _, judge := range m.judges {
		judge.tell(event)
	}
}

// apply takes in how a test ended and shows it; access is held.
func (m *Monitor) apply(tag string, outcome outcome, round bool) {
	if outcome.reason == "" {
		m.latest[tag] = success{outcome.delay, time.Now()}
		m.mute = false
	} else {
		delete(m.latest, tag)
		m.logger.Debug("test of ", tag, " failed: ", outcome.reason)
	}
	if round {
		m.count.add(outcome)
	}
	for _, judge := range m.judges {
		judge.apply(tag, outcome, round)
	}
	if m.applied != nil {
		m.applied(tag)
	}
}

func (c *count) add(outcome outcome) {
	if outcome.reason == "" {
		c.answers++
		return
	}
	c.failures++
	if c.reason == "" {
		c.reason = outcome.reason
	}
}
