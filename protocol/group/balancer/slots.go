package balancer

import (
	"slices"
	"strconv"

	"tarazu/adapter"
	"tarazu/common/rendezvous"
)

// slotRing hashes keys to slots by the slots' numbers, so that keys of a slot that is skipped spread the same way each
// time (S4.4c).
func (s pool) slotRing(count int) *rendezvous.Ring {
	slots := make([]rendezvous.Member, count)
	for i := range slots {
		slots[i].Tag = strconv.Itoa(i)
	}
	return rendezvous.New(s.tag, slots)
}

type slotPicker struct {
	holdings
	turns          bool
	healthy        []bool // slots
	healthyHolders []int
}

func newSlotPicker(view view, held holdings, turns bool) *slotPicker {
	picker := &slotPicker{holdings: held, turns: turns, healthy: make([]bool, len(held.holders))}
	known := slices.ContainsFunc(held.holders, view.answered)
	for slot, index := range held.holders {
		member, _ := view.find(index)
		if member.answered() || !known && member.state != adapter.StateDown {
			picker.healthy[slot] = true
			picker.healthyHolders = append(picker.healthyHolders, index)
		}
	}
	return picker
}

// pick returns the holder of the key's slot; while that does not answer, of another slot, the same each time; with no
// healthy slot, the hashed slot's holder all the same (S4.4g).
func (p *slotPicker) pick(key uint64) int {
	if p.turns {
		holders := p.healthyHolders
		if len(holders) == 0 {
			holders = p.holders
		}
		return holders[(p.taken.Add(1)-1)%uint64(len(holders))]
	}
	slot := p.ring.Pick(key)
	if !p.healthy[slot] && len(p.healthyHolders) > 0 {
		slot = p.ring.Best(key, func(slot int) bool { return p.healthy[slot] })
	}
	return p.holders[slot]
}
