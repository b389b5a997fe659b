package monitoring

import (
	"context"
	"slices"
	"time"

	"tarazu/adapter"
)

// judge is what one `rise` and `fall` make of the outcomes of a monitor's tests: groups that differ in these alone share
// the tests (S2.1a). The monitor's lock guards it.
type judge struct {
	rise, fall int
	records    map[string]record
	groups     []adapter.Subscriber
}

// judge returns the one for a rise and a fall; access is held, or nothing has begun.
func (m *Monitor) judge(rise, fall int) *judge {
	for _, it := range m.judges {
		if it.rise == rise && it.fall == fall {
			return it
		}
	}
	it := &judge{rise: rise, fall: fall, records: make(map[string]record)}
	m.judges = append(m.judges, it)
	return it
}

// apply takes in how a test ended and tells the groups.
func (j *judge) apply(tag string, outcome outcome, round bool) adapter.Result {
	known := j.records[tag].tested(outcome, j.rise, j.fall, time.Now())
	j.records[tag] = known
	j.tell(adapter.Event{
		Kind: adapter.EventResult, Tag: tag, Result: known.result, Failed: outcome.reason != "", Round: round,
	})
	return known.result
}

func (j *judge) tell(event adapter.Event) {
	for _, group := range j.groups {
		group.Deliver(event)
	}
}

// handle is a group's side of a monitor.
type handle struct {
	*Monitor
	service *Service
	judge   *judge
	window  time.Duration
}

var _ adapter.Monitor = (*handle)(nil)

// Subscribe adds the group.
func (h *handle) Subscribe(group adapter.Subscriber) (unsubscribe func()) {
	h.access.Lock()
	defer h.access.Unlock()
	h.judge.groups = append(h.judge.groups, group)
	return func() {
		h.access.Lock()
		defer h.access.Unlock()
		h.judge.groups = slices.DeleteFunc(slices.Clone(h.judge.groups), func(it adapter.Subscriber) bool { return it == group })
	}
}

// Result returns what is known of an outbound.
func (h *handle) Result(tag string) adapter.Result {
	h.access.Lock()
	defer h.access.Unlock()
	return h.judge.records[tag].result
}

// Test has what a group reaches tested at once (S2.3).
func (h *handle) Test(ctx context.Context, group string) (tested []string) {
	h.access.Lock()
	tested = h.targets([]string{group})
	done := h.testSoon(tested)
	h.access.Unlock()
	select {
	case <-ctx.Done():
	case <-done:
	}
	return tested
}

// Touch reports traffic through the group. Rounds that had stopped for want of it start again at once (S1.4).
func (h *handle) Touch(ctx context.Context) {
	h.traffic.touch(ctx)
}

// Refresh takes in what others tested.
func (h *handle) Refresh() {
	h.service.takeIn()
}

// Reselected tells the groups around the one that changed its choice, and dashboards.
func (h *handle) Reselected() {
	h.service.reselected()
}

// NetworkChanged starts all over, for all monitors of the box.
func (h *handle) NetworkChanged() {
	h.service.networkChanged()
}

// DebounceWindow is the time within which the group applies events together (S1.4).
func (h *handle) DebounceWindow() time.Duration {
	return h.window
}
