package monitoring

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"tarazu/adapter"
	"tarazu/option"

	"github.com/sagernet/sing/common/logger"
)

var _ adapter.Monitor = (*Monitor)(nil)

// Monitor tests outbounds with one set of settings, each once per round however many groups list it (SPEC S2.1), and
// tells the groups.
type Monitor struct {
	settings option.MonitoringSettings
	// targets returns the tags to test, in configuration order; asked anew for each round.
	targets func(groups []string) []string
	// probe makes one test. It returns when ctx ends.
	probe func(ctx context.Context, tag string) (time.Duration, error)
	// publish shows a result to the rest of the box (S2.2).
	publish func(tag string, result adapter.Result)
	logger  logger.Logger

	access  sync.Mutex
	records map[string]record
	flights map[string]*flight
	groups  []adapter.Subscriber
	ctx     context.Context // nil until started, ended by Close
	cancel  context.CancelFunc
	tasks   sync.WaitGroup
	outside chan struct{} // slots for tests outside a round

	touched atomic.Int64 // when traffic was seen last, Unix nanoseconds
	idle    atomic.Bool
	woken   chan struct{}
}

// flight is a test in progress.
type flight struct {
	round bool          // a round waits for it
	done  chan struct{} // closed when its outcome is applied
	stuck bool          // its time is over, but the probe has not returned
}

func newMonitor(settings option.MonitoringSettings, logger logger.Logger) *Monitor {
	return &Monitor{
		settings: settings,
		logger:   logger,
		records:  make(map[string]record),
		flights:  make(map[string]*flight),
		outside:  make(chan struct{}, settings.Workers),
		woken:    make(chan struct{}, 1),
	}
}

// Subscribe adds a group.
func (m *Monitor) Subscribe(group adapter.Subscriber) (unsubscribe func()) {
	m.access.Lock()
	defer m.access.Unlock()
	m.groups = append(m.groups, group)
	return func() {
		m.access.Lock()
		defer m.access.Unlock()
		m.groups = slices.DeleteFunc(slices.Clone(m.groups), func(it adapter.Subscriber) bool { return it == group })
	}
}

// Result returns what is known of an outbound.
func (m *Monitor) Result(tag string) adapter.Result {
	m.access.Lock()
	defer m.access.Unlock()
	return m.records[tag].result
}

// DebounceWindow is the time within which a group applies events together (S1.4).
func (m *Monitor) DebounceWindow() time.Duration {
	return m.settings.DebounceWindow
}

// Touch reports traffic through a group. Rounds that had stopped for want of it start again at once (S1.4).
func (m *Monitor) Touch() {
	// Every core would write here for every connection; a hundredth of a second is exact enough.
	if now := time.Now().UnixNano(); now-m.touched.Load() > int64(10*time.Millisecond) {
		m.touched.Store(now)
	}
	if m.idle.Load() && m.idle.Swap(false) {
		select {
		case m.woken <- struct{}{}:
		default:
		}
	}
}

// start begins the rounds; the first is not held (S7.4).
func (m *Monitor) start(ctx context.Context) {
	m.access.Lock()
	defer m.access.Unlock()
	m.ctx, m.cancel = context.WithCancel(ctx)
	m.touched.Store(time.Now().UnixNano())
	m.tell(adapter.Event{Kind: adapter.EventStarted})
	m.tasks.Go(func() { m.rounds(m.ctx) })
}

// closePatience is how long close waits for tests that it cancelled.
const closePatience = 500 * time.Millisecond

// close cancels every test and waits for what runs them, but not for a member that does not let go (S2.7).
func (m *Monitor) close() {
	m.access.Lock()
	if m.cancel == nil {
		m.access.Unlock()
		return
	}
	m.cancel()
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

// tell delivers an event to all groups, in the order in which things happen: access is held.
func (m *Monitor) tell(event adapter.Event) {
	for _, group := range m.groups {
		group.Deliver(event)
	}
}

func (m *Monitor) rounds(ctx context.Context) {
	for held := false; ; held = true {
		next := time.Now().Add(m.interval())
		m.round(ctx, held)
		if !sleepUntil(ctx, next) || !m.awaitTraffic(ctx) {
			return
		}
	}
}

// interval is the time between the starts of two rounds: the setting, more or less by up to the jitter.
func (m *Monitor) interval() time.Duration {
	deviation := m.settings.Jitter * (2*rand.Float64() - 1)
	return time.Duration(float64(m.settings.Interval) * (1 + deviation))
}

func sleepUntil(ctx context.Context, at time.Time) bool {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// awaitTraffic returns at once, or, where there was no traffic for `idle_timeout`, with the next connection (S1.4).
func (m *Monitor) awaitTraffic(ctx context.Context) bool {
	quietSince := time.Unix(0, m.touched.Load())
	if m.settings.IdleTimeout == 0 || time.Since(quietSince) < m.settings.IdleTimeout {
		return true
	}
	m.logger.Debug("no traffic for ", m.settings.IdleTimeout, ": tests stop until the next connection")
	m.idle.Store(true)
	select {
	case <-ctx.Done():
		return false
	case <-m.woken:
		return true
	}
}

// round tests every target once, `workers` at a time. A test that hangs holds its own worker only.
func (m *Monitor) round(ctx context.Context, held bool) {
	queue := make(chan string)
	m.access.Lock()
	tags := m.ordered()
	m.tell(adapter.Event{Kind: adapter.EventRoundStart, Held: held})
	m.access.Unlock()
	var workers sync.WaitGroup
	for range min(m.settings.Workers, len(tags)) {
		workers.Go(func() {
			for tag := range queue {
				m.test(ctx, tag)
			}
		})
	}
feed:
	for _, tag := range tags {
		select {
		case <-ctx.Done():
			break feed
		case queue <- tag:
		}
	}
	close(queue)
	workers.Wait()
	if ctx.Err() != nil {
		return
	}
	m.access.Lock()
	defer m.access.Unlock()
	m.tell(adapter.Event{Kind: adapter.EventRoundEnd})
}

// ordered returns the targets in the order of testing: those with a cached result first, fastest first, then the rest
// in configuration order (S2.6).
func (m *Monitor) ordered() []string {
	groups := make([]string, len(m.groups))
	for i, group := range m.groups {
		groups[i] = group.Tag()
	}
	tags := m.targets(groups)
	rank := func(tag string) int {
		if result := m.records[tag].result; result.State == adapter.StateCached {
			return int(result.Delay)
		}
		return math.MaxInt
	}
	slices.SortStableFunc(tags, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	return tags
}

// DialFailed starts a test of an outbound through which a connection failed to open: one at a time, and not before its
// pause is over (S5.3).
func (m *Monitor) DialFailed(tag string) {
	m.access.Lock()
	defer m.access.Unlock()
	if m.ctx == nil || m.ctx.Err() != nil {
		return
	}
	known := m.records[tag]
	var allowed bool
	known.retests, allowed = known.retests.dialFailed(time.Now())
	m.records[tag] = known
	if !allowed || m.flights[tag] != nil {
		return
	}
	// Taken at once, so that failures until the test begins start no second one.
	flight := m.board(tag)
	m.tell(adapter.Event{Kind: adapter.EventRetest, Tag: tag})
	m.tasks.Go(func() {
		select {
		case m.outside <- struct{}{}:
			defer func() { <-m.outside }()
		case <-m.ctx.Done():
		}
		failed := m.fly(m.ctx, tag, flight)
		m.access.Lock()
		defer m.access.Unlock()
		known := m.records[tag]
		known.retests = known.retests.ended(failed, time.Now())
		m.records[tag] = known
		m.tell(adapter.Event{Kind: adapter.EventRetest, Tag: tag, Ended: true})
	})
}

// test makes one test for a round, or waits for one that is in progress: it counts for the round too.
func (m *Monitor) test(ctx context.Context, tag string) {
	m.access.Lock()
	current := m.flights[tag]
	switch {
	case current == nil:
		current = m.board(tag)
		current.round = true
		m.access.Unlock()
		m.fly(ctx, tag, current)
		return
	case current.stuck:
		m.apply(tag, outcome{reason: "the previous test still hangs"}, true)
		m.access.Unlock()
		return
	}
	current.round = true
	m.access.Unlock()
	select {
	case <-ctx.Done():
	case <-current.done:
	}
}

func (m *Monitor) board(tag string) *flight {
	flight := &flight{done: make(chan struct{})}
	m.flights[tag] = flight
	return flight
}

// grace is how long a probe may take to let go when its time is over.
const grace = 100 * time.Millisecond

// fly makes a test that was boarded, applies its outcome and reports whether it failed. It returns when the time is
// over, even if the probe does not; until that does too, no other test of the outbound starts.
func (m *Monitor) fly(ctx context.Context, tag string, flight *flight) (failed bool) {
	testCtx, cancel := context.WithTimeout(ctx, m.settings.Timeout)
	defer cancel()
	type ending struct {
		elapsed time.Duration
		err     error
	}
	ended := make(chan ending, 1)
	m.tasks.Go(func() {
		elapsed, err := m.probe(testCtx, tag)
		ended <- ending{elapsed, err}
	})
	var end ending
	returned := true
	select {
	case end = <-ended:
	case <-testCtx.Done():
		letGo := time.NewTimer(grace)
		defer letGo.Stop()
		select {
		case end = <-ended:
		case <-letGo.C:
			end.err, returned = testCtx.Err(), false
		}
	}
	m.access.Lock()
	defer m.access.Unlock()
	defer close(flight.done)
	if !returned {
		flight.stuck = true
		m.tasks.Go(func() {
			<-ended
			m.access.Lock()
			defer m.access.Unlock()
			delete(m.flights, tag)
		})
	} else {
		delete(m.flights, tag)
	}
	switch {
	case ctx.Err() != nil:
		return false
	case IsLocal(end.err):
		m.logger.Debug("test of ", tag, " does not count: ", reasonOf(end.err))
		return false
	}
	outcome := outcomeOf(end.elapsed, end.err, m.settings.Timeout)
	m.apply(tag, outcome, flight.round)
	return outcome.reason != ""
}

// apply takes in how a test ended, shows it and tells the groups; access is held.
func (m *Monitor) apply(tag string, outcome outcome, round bool) {
	known := m.records[tag].tested(outcome, m.settings.Rise, m.settings.Fall, time.Now())
	m.records[tag] = known
	m.publish(tag, known.result)
	m.tell(adapter.Event{
		Kind: adapter.EventResult, Tag: tag, Result: known.result, Failed: outcome.reason != "", Round: round,
	})
}
