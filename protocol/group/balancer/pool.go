package balancer

import (
	"slices"
	"sync/atomic"
	"time"

	"tarazu/adapter"
	"tarazu/common/rendezvous"
	"tarazu/option"
)

// pool keeps a number of slots, each held by one member; the hash of a connection's key picks the slot (S4.4). A member
// keeps its slot while it answers, so no other slot's connections ever move. A holder that no test has reached yet keeps
// its slot too, but is skipped once another is known to answer: its test may hang for long (FIELD case 2).
type pool struct {
	tag   string
	slots int
	// turns: with `sticky_hash: ["none"]` the slots take turns instead.
	turns bool
	// trades says that an outsider may take a slot for speed, by this margin and at most once per cooldown.
	trades   bool
	margin   margin
	cooldown time.Duration
}

const defaultSlots = 3

func newPool(setting setting) strategy {
	options := setting.options
	p := pool{
		tag: setting.tag, slots: options.Pool,
		turns:    slices.Contains(options.StickyHash, option.StickyNone),
		trades:   options.Tolerance != nil,
		margin:   newMargin(options, margin{}),
		cooldown: cooldownOr(options, 0),
	}
	if p.slots == 0 {
		p.slots = defaultSlots
	}
	return p
}

// holdings is what a pool remembers.
type holdings struct {
	holders []int // of each slot
	ring    *rendezvous.Ring
	traded  time.Time
	taken   *atomic.Uint64 // turns
}

func (s pool) choose(view view, previous memory) choice {
	held, _ := previous.(holdings)
	if held.taken == nil {
		held.taken = new(atomic.Uint64)
	}
	held.holders = s.fill(view, held.holders)
	if held.ring == nil || held.ring.Len() != len(held.holders) {
		held.ring = s.slotRing(len(held.holders))
	}
	var wake time.Time
	if s.trades {
		if due := held.traded.Add(s.cooldown); held.traded.IsZero() || !view.now.Before(due) {
			if s.trade(view, held.holders) {
				held.traded = view.now
			}
		}
		if due := held.traded.Add(s.cooldown); !held.traded.IsZero() && due.After(view.now) {
			wake = due
		}
	}
	return choice{picker: newSlotPicker(view, held, s.turns), memory: held, selected: noMember, wake: wake}
}

// fill returns the holders of all slots: a member keeps its slot until a test of it fails and another healthy one is
// there (S4.4 a to c).
func (s pool) fill(view view, before []int) []int {
	count := min(s.slots, len(view.members))
	holders := make([]int, count)
	outsiders := make([]candidate, 0, len(view.members))
	for slot := range holders {
		holders[slot] = noMember
		if slot < len(before) {
			if _, considered := view.find(before[slot]); considered {
				holders[slot] = before[slot]
			}
		}
	}
	for _, member := range view.members {
		if !slices.Contains(holders, member.index) {
			outsiders = append(outsiders, member)
		}
	}
	slices.SortStableFunc(outsiders, func(a, b candidate) int { return fitness(b) - fitness(a) })
	for slot, index := range holders {
		member, isHeld := candidate{}, index != noMember
		if isHeld {
			member, _ = view.find(index)
		}
		if !isHeld || member.state == adapter.StateDown && len(outsiders) > 0 && outsiders[0].state != adapter.StateDown {
			holders[slot] = outsiders[0].index
			outsiders = outsiders[1:]
			if isHeld {
				outsiders = append(outsiders, member)
			}
		}
	}
	if len(outsiders) > 0 && outsiders[0].answered() && !slices.ContainsFunc(holders, view.answered) {
		holders[0] = outsiders[0].index // all holders are untested: there has to be one that is of use
	}
	return holders
}

// fitness ranks members for a slot: healthy ones first, fresh before cached before untested (S4.4a).
func fitness(member candidate) int {
	return [...]int{adapter.StateUp: 3, adapter.StateCached: 2, adapter.StateUntested: 1, adapter.StateDown: 0}[member.state]
}

// trade gives slots of slow holders to outsiders that are faster by more than the margin (S4.4d), all at once without a
// cooldown, else one.
func (s pool) trade(view view, holders []int) (traded bool) {
	for range holders {
		slowest, holder, fastestOutside := -1, candidate{}, candidate{delay: deadDelay}
		for slot, index := range holders {
			if member, _ := view.find(index); member.fresh() && (slowest == -1 || member.delay > holder.delay) {
				slowest, holder = slot, member
			}
		}
		for _, member := range view.members {
			if member.fresh() && member.delay < fastestOutside.delay && !slices.Contains(holders, member.index) {
				fastestOutside = member
			}
		}
		if slowest == -1 || !fastestOutside.fresh() || !s.margin.beaten(holder.delay, fastestOutside.delay) {
			return traded
		}
		holders[slowest] = fastestOutside.index
		traded = true
		if s.cooldown > 0 {
			return traded
		}
	}
	return traded
}
