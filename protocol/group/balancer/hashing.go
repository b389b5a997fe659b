package balancer

import (
	"slices"
	"sync/atomic"

	"tarazu/common/rendezvous"
)

// hashing picks by rendezvous hashing and knows what to do where the hashed member is dead (S4.2).
type hashing struct {
	ring     *rendezvous.Ring
	maxRetry int
	// considered and alive tell of each member of the group whether this network considers it, and whether it is alive.
	considered, alive []bool
	// aliveMembers are those alive, in list order.
	aliveMembers []int
}

func newHashing(ring *rendezvous.Ring, maxRetry int, view view) hashing {
	h := hashing{
		ring: ring, maxRetry: maxRetry,
		considered: make([]bool, len(view.position)), alive: make([]bool, len(view.position)),
	}
	for _, member := range view.members {
		h.considered[member.index] = true
		if member.alive {
			h.alive[member.index] = true
			h.aliveMembers = append(h.aliveMembers, member.index)
		}
	}
	return h
}

func (h hashing) equal(other hashing) bool {
	return slices.Equal(h.considered, other.considered) && slices.Equal(h.alive, other.alive)
}

// pick returns the hashed member, or, where that is dead, one of up to max_retry next picks of the hash, then the first
// alive member of the list. With none alive it is the hashed one all the same.
func (h hashing) pick(key uint64) int {
	hashed := h.ring.Best(key, func(index int) bool { return h.considered[index] })
	if len(h.aliveMembers) == 0 || h.alive[hashed] {
		return hashed
	}
	if h.maxRetry >= len(h.alive)-1 {
		return h.ring.Best(key, func(index int) bool { return h.alive[index] })
	}
	index := hashed
	for retries := 0; retries < h.maxRetry; {
		index = h.ring.Next(key, index)
		if index == rendezvous.None {
			break
		}
		if h.alive[index] {
			return index
		}
		if h.considered[index] {
			retries++
		}
	}
	return h.aliveMembers[0]
}

// rememberingPicker keeps picks for as long as nothing changes: with many members, hashing them all costs more than
// looking up.
type rememberingPicker struct {
	hashing
	// picks hold a key's upper bits and, in the place of the lower 16, its member and one. Zero is empty.
	picks []atomic.Uint64
}

const (
	// rememberFrom is the number of members from which on looking up is faster.
	rememberFrom = 24
	rememberPick = 1 << 12
	memberBits   = 16
	maxMember    = 1<<memberBits - 2
)

func newRememberingPicker(hashed hashing) *rememberingPicker {
	p := &rememberingPicker{hashing: hashed}
	if count := len(hashed.considered); count >= rememberFrom && count <= maxMember {
		p.picks = make([]atomic.Uint64, rememberPick)
	}
	return p
}

func (p *rememberingPicker) pick(key uint64) int {
	if p.picks == nil {
		return p.hashing.pick(key)
	}
	// The lower bits choose the place, the upper ones are compared; the four between are in neither, which makes two
	// keys as likely to be mistaken for each other as two hashes of 60 bits.
	place := &p.picks[key%rememberPick]
	const members = 1<<memberBits - 1
	if known := place.Load(); known != 0 && known&^members == key&^members {
		return int(known&members) - 1
	}
	index := p.hashing.pick(key)
	place.Store(key&^members | uint64(index+1))
	return index
}
