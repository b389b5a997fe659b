package balancer

import (
	"cmp"
	"math"
	"slices"
	"sync/atomic"
)

// rotation is an endless sequence of turns that connections take one by one.
type rotation struct {
	sequence []int32
	// turns says how often each member stands in the sequence, period how long that is in virtual time.
	turns  map[int]int
	period float64
	_      [64]byte // the counter is written by every core: it shares no cache line with what they read
	taken  atomic.Uint64
}

func (r *rotation) pick(uint64) int {
	return int(r.sequence[(r.taken.Add(1)-1)%uint64(len(r.sequence))])
}

// maxTurns bounds a rotation's memory: weights that need a longer sequence are scaled down, which changes a share by
// less than 1/maxTurns.
const maxTurns = 1 << 16

// newRotation lays out one period of turns: a member of weight w stands in it w times, at equal distances from its due
// time on; of equals the fastest is first, and the latest, which was just served, last. due is completed with members
// that were not there before; they are due now.
func newRotation(view view, members []int, due map[int]float64, latest int) *rotation {
	turns, period := turnsOf(view, members)
	type occurrence struct {
		at     float64
		member int
	}
	if i := slices.Index(members, latest); i >= 0 {
		members = append(slices.Delete(slices.Clone(members), i, i+1), latest)
	}
	var occurrences []occurrence
	for _, member := range members {
		due[member] = max(due[member], 0) // a member that comes back has saved nothing up
		for k := range turns[member] {
			occurrences = append(occurrences, occurrence{due[member] + period*float64(k)/float64(turns[member]), member})
		}
	}
	slices.SortStableFunc(occurrences, func(a, b occurrence) int { return cmp.Compare(a.at, b.at) })
	sequence := make([]int32, len(occurrences))
	for i, occurrence := range occurrences {
		sequence[i] = int32(occurrence.member)
	}
	return &rotation{sequence: sequence, turns: turns, period: period}
}

// turnsOf returns how often each member takes a turn in one period, and the period's length in virtual time: the weights
// divided by their common divisor, and scaled to maxTurns where the sum is larger.
func turnsOf(view view, members []int) (turns map[int]int, period float64) {
	turns = make(map[int]int, len(members))
	divisor, total := 0, 0
	for _, index := range members {
		member, _ := view.find(index)
		turns[index] = member.weight
		total += member.weight
		divisor = commonDivisor(divisor, member.weight)
	}
	scale := min(1/float64(divisor), maxTurns/float64(total))
	for index, weight := range turns {
		turns[index] = max(1, int(math.Round(float64(weight)*scale)))
	}
	return turns, fullShare * scale
}

func commonDivisor(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// advance moves the due times by the turns from the first (counted from 0) up to but not including the last.
func (r *rotation) advance(due map[int]float64, first, last uint64) {
	period := uint64(len(r.sequence))
	if last-first >= period {
		periods := (last - first) / period
		for member := range r.turns {
			due[member] += r.period * float64(periods)
		}
		first += periods * period
	}
	for ; first != last; first++ {
		member := int(r.sequence[first%period])
		due[member] += r.period / float64(r.turns[member])
	}
}
