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
	// Taken at once, so that failures until the test begins start no second one.
	flight, network := m.board(tag), m.network
	m.tell(adapter.Event{Kind: adapter.EventRetest, Tag: tag})
	m.tasks.Go(func() {
		failed := m.flyOutside(network, tag, flight)
		m.access.Lock()
		defer m.access.Unlock()
		m.retests[tag] = m.retests[tag].ended(failed, time.Now())
		m.tell(adapter.Event{Kind: adapter.EventRetest, Tag: tag, Ended: true})
	})
}

// testSoon has outbounds tested outside a round (S2.3), beginning now, and returns what is closed when all are done;
// access is held.
func (m *Monitor) testSoon(tags []string) <-chan struct{} {
	done := make(chan struct{})
	network := m.network
	if network == nil || network.Err() != nil || len(tags) == 0 {
		close(done)
		return done
	}
	m.tasks.Go(func() {
		defer close(done)
		m.each(network, tags, func(tag string) { m.test(network, tag, false) })
	})
	return done
}

// test makes one test, or waits for one that is in progress: it counts for the round too, if it is wanted for one.
func (m *Monitor) test(network context.Context, tag string, round bool) {
	m.access.Lock()
	if network.Err() != nil {
		m.access.Unlock()
		return
	}
	current := m.flights[tag]
	switch {
	case current == nil:
		current = m.board(tag)
		current.round = round
		m.access.Unlock()
		if round {
			m.fly(network, tag, current)
		} else {
			m.flyOutside(network, tag, current)
		}
		return
	case current.stuck:
		if round {
			m.apply(tag, outcome{reason: "the previous test still hangs"}, true)
		}
		m.access.Unlock()
		return
	}
	current.round = current.round || round
	m.access.Unlock()
	select {
	case <-network.Done():
	case <-current.done:
	}
}

// flyOutside is fly when there is a slot for a test outside a round.
func (m *Monitor) flyOutside(network context.Context, tag string, flight *flight) (failed bool) {
	select {
	case m.outside <- struct{}{}:
		defer func() { <-m.outside }()
	case <-network.Done():
	}
	return m.fly(network, tag, flight)
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
