package balancer

import (
	"cmp"
	"slices"
	"time"

	"tarazu/adapter"
	"tarazu/common/rendezvous"
	"tarazu/option"
)

// The models are the strategies once more, as plainly as the specification says them and as slowly as that may be.
// Properties compare every pick of a strategy with its model's.

// world is what is known of the members, without any arithmetic done.
type world struct {
	now         time.Time
	round, held bool
	members     []known
	// considered are the members of one network (S3.3).
	considered []int
}

type known struct {
	state   adapter.State
	delay   int
	weight  int
	udp     bool
	tested  bool
	suspect bool
}

func (w *world) delay(i int) int {
	switch it := w.members[i]; it.state {
	case adapter.StateUp:
		return it.delay
	case adapter.StateCached:
		return min(it.delay+20000, 65534)
	}
	return 65535
}

func (w *world) is(state adapter.State) (members []int) {
	for _, i := range w.considered {
		if w.members[i].state == state {
			members = append(members, i)
		}
	}
	return members
}

// quickest returns the member with the least delay, the first of equal ones.
func (w *world) quickest(members []int) int {
	return slices.MinFunc(members, func(a, b int) int { return cmp.Compare(w.delay(a), w.delay(b)) })
}

func (w *world) slowest(members []int) int {
	return slices.MaxFunc(members, func(a, b int) int { return cmp.Compare(w.delay(a), w.delay(b)) })
}

func (w *world) alive() (members []int) {
	acceptable := min(2*max(100, w.delay(w.quickest(w.considered))), 65534)
	for _, i := range w.considered {
		if w.delay(i) <= acceptable {
			members = append(members, i)
		}
	}
	return members
}

func (w *world) down(i int) bool     { return w.members[i].state == adapter.StateDown }
func (w *world) up(i int) bool       { return w.members[i].state == adapter.StateUp }
func (w *world) answered(i int) bool { return w.up(i) || w.members[i].state == adapter.StateCached }

// beats is S3.5 with a tolerance of 50 ms and a tenth.
func (w *world) beats(challenger, holder int) bool {
	gain := w.delay(holder) - w.delay(challenger)
	return gain > 50 && 10*gain > w.delay(holder)
}

func without(members, others []int) (rest []int) {
	for _, i := range members {
		if !slices.Contains(others, i) {
			rest = append(rest, i)
		}
	}
	return rest
}

func among(members, others []int) (shared []int) {
	return without(members, without(members, others))
}

type model interface {
	decide(w *world, why cause)
	pick(w *world, key uint64) int
	// due is when to decide again although nothing arrives; zero for never.
	due() time.Time
}

type timeless struct{}

func (timeless) due() time.Time { return time.Time{} }

// failoverModel is S4.6.
type failoverModel struct{ timeless }

func (failoverModel) decide(*world, cause) {}

func (failoverModel) pick(w *world, _ uint64) int {
	if healthy := without(w.considered, w.is(adapter.StateDown)); len(healthy) > 0 {
		return healthy[0]
	}
	return w.considered[0]
}

// lowestDelayModel is S3.4 to S3.8 and S7.1 to S7.3.
type lowestDelayModel struct {
	started  bool
	selected int
	until    time.Time
	stopgap  bool
}

func (m *lowestDelayModel) due() time.Time { return m.until }

func (m *lowestDelayModel) decide(w *world, why cause) {
	if !m.started { // S3.4
		m.started, m.selected = true, w.considered[0]
		if cached := w.is(adapter.StateCached); len(cached) > 0 {
			m.selected = w.quickest(cached)
		}
	}
	defer func() { m.stopgap = m.stopgap && why != causeRoundEnd }()
	fresh, cached := w.is(adapter.StateUp), w.is(adapter.StateCached)
	switch {
	case len(fresh) == 0 && len(cached) == 0: // S3.7: it stays
	case len(fresh) == 0:
		if best := w.quickest(cached); w.delay(best) < w.delay(m.selected) { // S3.8
			m.take(best, w)
		}
	case !w.up(m.selected): // S3.7, S3.8
		m.take(w.quickest(fresh), w)
	case w.held && !w.members[m.selected].tested: // S7.3
	case w.now.Before(m.until) && !(m.stopgap && why == causeRoundEnd): // S3.6, S7.2
	case w.beats(w.quickest(fresh), m.selected): // S3.5
		m.take(w.quickest(fresh), w)
	}
}

func (m *lowestDelayModel) take(member int, w *world) {
	m.stopgap = w.round && !w.up(m.selected)
	m.selected, m.until = member, time.Time{}
	if w.up(member) {
		m.until = w.now.Add(30 * time.Second)
	}
}

func (m *lowestDelayModel) pick(*world, uint64) int { return m.selected }

// poolModel is S4.4.
type poolModel struct {
	timeless
	size  int
	moves bool // with `tolerance`
	slots []int
	ring  *rendezvous.Ring
}

func (m *poolModel) decide(w *world, _ cause) {
	for len(m.slots) < min(m.size, len(w.considered)) { // a
		m.slots = append(m.slots, m.successor(w))
	}
	for slot, holder := range m.slots {
		if next := m.successor(w); next >= 0 && w.down(holder) && !w.down(next) { // b, c
			m.slots[slot] = next
		}
	}
	if next := m.successor(w); next >= 0 && len(m.answering(w)) == 0 && w.answered(next) { // FIELD case 2
		m.slots[0] = next
	}
	for m.moves { // d
		holders, outside := among(m.slots, w.is(adapter.StateUp)), without(w.is(adapter.StateUp), m.slots)
		if len(holders) == 0 || len(outside) == 0 || !w.beats(w.quickest(outside), w.slowest(holders)) {
			break
		}
		m.slots[slices.Index(m.slots, w.slowest(holders))] = w.quickest(outside)
	}
}

func (m *poolModel) answering(w *world) []int {
	return among(m.slots, append(w.is(adapter.StateUp), w.is(adapter.StateCached)...))
}

// successor is the first outside of the pool: fresh, then cached, then untested, then dead.
func (m *poolModel) successor(w *world) int {
	for _, state := range []adapter.State{adapter.StateUp, adapter.StateCached, adapter.StateUntested, adapter.StateDown} {
		if outside := without(w.is(state), m.slots); len(outside) > 0 {
			return outside[0]
		}
	}
	return noMember
}

func (m *poolModel) pick(w *world, key uint64) int {
	usable := m.answering(w)
	if len(usable) == 0 {
		usable = without(m.slots, w.is(adapter.StateDown))
	}
	for slot := m.ring.Pick(key); slot != rendezvous.None; slot = m.ring.Next(key, slot) {
		if slices.Contains(usable, m.slots[slot]) {
			return m.slots[slot]
		}
	}
	return m.slots[m.ring.Pick(key)] // g
}

// roundRobinModel is S4.1: whoever has waited longest for its share; of equals, who has not had the turns of its share
// since the decision; then the fastest, and last who was served last before it.
type roundRobinModel struct {
	timeless
	inUse, turns []int
	proven       bool
	next         map[int]float64
	taken        map[int]int
	latest       int
}

func (m *roundRobinModel) decide(w *world, _ cause) {
	alive, before := w.alive(), m.inUse
	if w.held && m.proven { // S7.1: they stay as long as they answer; S7.2: those alive join when one does not
		kept := among(before, w.is(adapter.StateUp))
		if len(kept) == len(before) {
			alive = kept
		} else {
			alive = append(kept, without(alive, kept)...)
		}
	}
	slices.Sort(alive)
	slices.SortStableFunc(alive, func(a, b int) int { return cmp.Compare(w.delay(a), w.delay(b)) })
	m.inUse, m.proven = alive, len(alive) > 0
	if !m.proven {
		m.inUse = w.considered
	}
	now := 0.0
	for i, member := range m.turns {
		if i == 0 || m.next[member] < now {
			now = m.next[member]
		}
	}
	m.turns = nil
	for _, i := range m.inUse {
		if !w.members[i].suspect { // S4.7
			m.turns = append(m.turns, i)
		}
	}
	if len(m.turns) == 0 {
		m.turns = m.inUse
	}
	m.taken = make(map[int]int)
	for _, i := range m.turns {
		m.next[i] = max(m.next[i], now) // who was away has saved nothing up
	}
	if slices.Contains(m.turns, m.latest) {
		m.turns = append(without(m.turns, []int{m.latest}), m.latest)
	}
}

func (m *roundRobinModel) pick(w *world, _ uint64) int {
	lightest := w.members[slices.MinFunc(m.turns, func(a, b int) int { return w.members[a].weight - w.members[b].weight })].weight
	m.latest = slices.MinFunc(m.turns, func(a, b int) int {
		return cmp.Or(
			cmp.Compare(m.next[a], m.next[b]),
			cmp.Compare(m.taken[a]/(w.members[a].weight/lightest), m.taken[b]/(w.members[b].weight/lightest)),
		)
	})
	m.next[m.latest] += 1 / float64(w.members[m.latest].weight)
	m.taken[m.latest]++
	return m.latest
}

// modelOf returns the model of a strategy, and the options that it is a model of.
func modelOf(name string, options option.BalancerOutboundOptions, slots *rendezvous.Ring) model {
	switch name {
	case option.StrategyFailover:
		return failoverModel{}
	case option.StrategyLowestDelay:
		return &lowestDelayModel{}
	case option.StrategyPool:
		return &poolModel{size: options.Pool, moves: options.Tolerance != nil, ring: slots}
	default:
		return &roundRobinModel{next: make(map[int]float64), latest: noMember}
	}
}
