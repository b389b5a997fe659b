package monitoring

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"tarazu/adapter"
)

// rounds runs one round after the other until ctx ends. The first, and the first on another network, is not held (S7.4).
func (m *Monitor) rounds(ctx context.Context) {
	held := false
	for {
		network, joined := m.awaitNetwork(ctx)
		if network == nil {
			return
		}
		next := time.Now().Add(m.interval())
		m.round(network, held && !joined)
		held = true
		if !m.rest(ctx, network, next) {
			return
		}
	}
}

// settleTime is how long a change of the network is given to reach all outbounds, which give up connections for it.
const settleTime = 100 * time.Millisecond

// awaitNetwork returns the network to test on, and whether it is another than that of the last round; nil at the end.
func (m *Monitor) awaitNetwork(ctx context.Context) (network context.Context, joined bool) {
	for {
		m.access.Lock()
		network = m.network
		m.access.Unlock()
		if network != nil {
			return network, joined
		}
		select {
		case <-ctx.Done():
			return nil, false
		case <-m.changed:
		}
		if !sleepUntil(ctx, time.Now().Add(settleTime)) {
			return nil, false
		}
		m.access.Lock()
		if !m.paused && m.network == nil {
			m.join()
			joined = true
		}
		m.access.Unlock()
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

// rest returns when the next round is due, at once when the network has ended, and false at the end. Where there was no
// traffic for `idle_timeout` it is due with the next connection (S1.4).
func (m *Monitor) rest(ctx, network context.Context, next time.Time) bool {
	if !sleepUntil(network, next) {
		return ctx.Err() == nil
	}
	if m.settings.IdleTimeout == 0 || m.traffic.quiet() < m.settings.IdleTimeout {
		return true
	}
	moved := m.traffic.next()
	if m.traffic.quiet() < m.settings.IdleTimeout {
		return true // something moved just now
	}
	m.logger.Debug("no traffic for ", m.settings.IdleTimeout, ": tests stop until the next connection")
	select {
	case <-network.Done():
		return ctx.Err() == nil
	case <-moved:
		return true
	}
}

// round tests every target once.
func (m *Monitor) round(network context.Context, held bool) {
	m.access.Lock()
	tags := m.ordered()
	m.count = count{}
	m.tell(adapter.Event{Kind: adapter.EventRoundStart, Held: held})
	m.access.Unlock()
	m.each(network, tags, func(tag string) { m.test(network, tag, true) })
	m.access.Lock()
	over := network.Err() == nil
	if over {
		m.roundEnded()
	}
	m.access.Unlock()
	if over && m.saved != nil {
		m.saved()
	}
}

// each makes tests of outbounds, `workers` at a time and in their order, until ctx ends. One that hangs holds its own
// worker only.
func (m *Monitor) each(ctx context.Context, tags []string, test func(tag string)) {
	queue := make(chan string)
	var workers sync.WaitGroup
	for range min(m.settings.Workers, len(tags)) {
		workers.Go(func() {
			for tag := range queue {
				test(tag)
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
}

// roundEnded tells the end of a round. Where nobody answered, that is said once, instead of a line a member (S2.5a);
// access is held.
func (m *Monitor) roundEnded() {
	answered := m.count.answers > 0
	if m.count.failures > 0 && !answered && !m.mute {
		m.mute = true
		m.logger.Warn("no member answers; is the network up? ", m.count.failures, " failed: ", m.count.reason)
	}
	m.tell(adapter.Event{Kind: adapter.EventRoundEnd, Answered: answered})
}

// ordered returns the targets in the order of testing: those with a cached result first, fastest first, then the rest
// in configuration order (S2.6).
func (m *Monitor) ordered() []string {
	tags := m.reached()
	rank := func(tag string) int {
		if result := m.judges[0].records[tag].result; result.State == adapter.StateCached {
			return int(result.Delay)
		}
		return math.MaxInt
	}
	slices.SortStableFunc(tags, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	return tags
}

// reached are the tags to test, in configuration order; access is held.
func (m *Monitor) reached() []string {
	var groups []string
	for _, judge := range m.judges {
		for _, group := range judge.groups {
			groups = append(groups, group.Tag())
		}
	}
	return m.targets(groups)
}
