package rendezvous

import (
	"cmp"
	"math/bits"
)

// None is what a pick returns when there is no member to pick.
const None = -1

// Pick returns the index, in the list that the ring was built from, of the member that the key belongs to.
func (r *Ring) Pick(key uint64) int {
	return r.search(key, nil, nil)
}

// Next returns the member that comes after the given one in the key's order, or None after the last. Pick and then
// Next, again and again, visit every member once. Every step takes as long as a Pick and allocates nothing.
func (r *Ring) Next(key uint64, index int) int {
	position := r.positions[index]
	after := r.standingOf(position, r.scoreOf(position, key))
	return r.search(key, &after, nil)
}

// Best returns the first usable member in the key's order, or None if none is. While a member is not usable its keys
// are spread over the others by weight, and all other keys stay.
func (r *Ring) Best(key uint64, usable func(index int) bool) int {
	return r.search(key, nil, usable)
}

// standing is where a member stands for one key.
type standing struct {
	// score is the member's draw; the greater is the better.
	score uint64
	// distance is -log2 of the draw as a share of all draws. Divided by the weight it is an exponential variable with
	// the weight as its rate, and the smallest of those falls to each member in proportion to the weights. It stays
	// zero where all weights are equal and the scores say the same.
	distance uint64
	weight   uint64
	position int
}

// before reports whether s comes earlier in the key's order than other. Equal draws, which only happen when the hashes
// of two tags collide, are in the order of the tags.
func (s standing) before(other standing) bool {
	if order := compareRatios(s.distance, s.weight, other.distance, other.weight); order != 0 {
		return order < 0
	}
	if s.score != other.score {
		return s.score > other.score
	}
	return s.position < other.position
}

func (r *Ring) scoreOf(position int, key uint64) uint64 {
	return mix(r.places[position].hash ^ key)
}

func (r *Ring) standingOf(position int, score uint64) standing {
	s := standing{score: score, weight: r.places[position].weight, position: position}
	if !r.equal {
		s.distance = distanceOf(score)
	}
	return s
}

// search finds the first member in the key's order that is usable and comes later than after.
func (r *Ring) search(key uint64, after *standing, usable func(index int) bool) int {
	best := standing{position: None}
	for position := range r.places {
		score := r.scoreOf(position, key)
		if best.position != None && r.hopeless(position, score, best) {
			continue
		}
		if usable != nil && !usable(r.places[position].index) {
			continue
		}
		candidate := r.standingOf(position, score)
		if after != nil && !after.before(candidate) {
			continue
		}
		if best.position == None || candidate.before(best) {
			best = candidate
		}
	}
	if best.position == None {
		return None
	}
	return r.places[best.position].index
}

// hopeless reports that a score cannot beat the best one so far. It leaves the costly logarithm to the few members, of
// the order of the logarithm of their number, that come near the lead.
func (r *Ring) hopeless(position int, score uint64, best standing) bool {
	if r.equal {
		return score <= best.score
	}
	return compareRatios(leastDistanceOf(score), r.places[position].weight, best.distance, best.weight) > 0
}

// compareRatios compares a/b with c/d exactly, by a·d and c·b in 128 bits.
func compareRatios(a, b, c, d uint64) int {
	leftHigh, leftLow := bits.Mul64(a, d)
	rightHigh, rightLow := bits.Mul64(c, b)
	return cmp.Or(cmp.Compare(leftHigh, rightHigh), cmp.Compare(leftLow, rightLow))
}

// mix spreads every bit of x over all bits of the result: the finalizer of SplitMix64 (Steele, Lea and Flood, "Fast
// splittable pseudorandom number generators", 2014, with Stafford's constants).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
