package monitoring

import (
	"context"
	"time"

	"tarazu/adapter"
)

// flight is a test in progress.
type flight struct {
	round bool          // a round waits for it
	done  chan struct{} // closed when its outcome is applied
	stuck bool          // its time is over, but the probe has not returned
}

// DialFailed starts a test of an outbound through which a connection failed to open: one at a time, and not before its
// pause is over (S5.3).
func (m *Monitor) DialFailed(tag string) {
	m.access.Lock()
	defer m.access.Unlock()
	if m.network == nil || m.network.Err() != nil {
		return
	}
	var allowed bool
	m.retests[tag], allowed = m.retests[tag].dialFailed(time.Now())
	if !allowed || m.flights[tag] != nil {
		return
	}
	m.tell(adapter.Event{Kind: adapter.EventRetest, Tag: tag})
	m.outsideRound(m.network, tag, func(failed bool) {
		m.retests[tag] = m.retests[tag].ended(failed, time.Now())
		m.tell(adapter.Event{Kind: adapter.EventRetest, Tag: tag, Ended: true})
	})
}

// testAll has outbounds tested at once, outside a round (S2.3): one that is being tested already is waited for. It
// returns when all are done or ctx ends; the tests go on.
func (m *Monitor) testAll(ctx context.Context, tags []string) {
	var begun []*flight
	m.access.Lock()
	if m.network != nil && m.network.Err() == nil {
		for _, tag := range tags {
			begun = append(begun, m.confirm(tag))
		}
	}
	m.access.Unlock()
	for _, it := range begun {
		select {
		case <-ctx.Done():
			return
		case <-it.done:
		}
	}
}

// confirm starts a test outside a round, unless one is in progress or still hangs, and returns it; access is held and
// there is a network.
func (m *Monitor) confirm(tag string) *flight {
	if current := m.flights[tag]; current != nil {
		return current
	}
	return m.outsideRound(m.network, tag, func(bool) {})
}

// outsideRound boards a flight at once, so that failures until the test begins start no second one, and makes the test
// when there is a slot; ended is called with access held, after its outcome was applied.
func (m *Monitor) outsideRound(network context.Context, tag string, ended func(failed bool)) *flight {
	flight := m.board(tag)
	m.tasks.Go(func() {
		select {
		case m.outside <- struct{}{}:
			defer func() { <-m.outside }()
		case <-network.Done():
		}
		failed := m.fly(network, tag, flight)
		m.access.Lock()
		defer m.access.Unlock()
		ended(failed)
	})
	return flight
}

// test makes one test for a round, or waits for one that is in progress: it counts for the round too.
func (m *Monitor) test(network context.Context, tag string) {
	m.access.Lock()
	if network.Err() != nil {
		m.access.Unlock()
		return
	}
	current := m.flights[tag]
	switch {
	case current == nil:
		current = m.board(tag)
		current.round = true
		m.access.Unlock()
		m.fly(network, tag, current)
		return
	case current.stuck:
		m.apply(tag, outcome{reason: "the previous test still hangs"}, true)
		m.access.Unlock()
		return
	}
	current.round = true
	m.access.Unlock()
	select {
	case <-network.Done():
	case <-current.done:
	}
}

func (m *Monitor) board(tag string) *flight {
	flight := &flight{done: make(chan struct{})}
	m.flights[tag] = flight
	return flight
}

// land takes a flight off the board, unless another took its place; access is held.
func (m *Monitor) land(tag string, flight *flight) {
	if m.flights[tag] == flight {
		delete(m.flights, tag)
	}
}

// grace is how long a probe may take to let go when its time is over.
const grace = 100 * time.Millisecond

// fly makes a test that was boarded, applies its outcome and reports whether it failed. It returns when the time is
// over, even if the probe does not; until that does too, no other test of the outbound starts on this network.
func (m *Monitor) fly(network context.Context, tag string, flight *flight) (failed bool) {
	testCtx, cancel := context.WithTimeout(network, m.settings.Timeout)
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
	if returned || network.Err() != nil {
		m.land(tag, flight)
	} else {
		flight.stuck = true
		m.tasks.Go(func() {
			<-ended
			m.access.Lock()
			defer m.access.Unlock()
			m.land(tag, flight)
		})
	}
	switch {
	case network.Err() != nil: // S2.5: it began on a network that is gone
		return false
	case IsLocal(end.err):
		m.logger.Debug("test of ", tag, " does not count: ", reasonOf(end.err))
		return false
	}
	outcome := outcomeOf(end.elapsed, end.err, m.settings.Timeout)
	m.apply(tag, outcome, flight.round)
	return outcome.reason != ""
}
