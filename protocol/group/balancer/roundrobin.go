package balancer

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"sync/atomic"
)

// roundRobin lets the alive members take connections in turn, in the order of their delay (S4.1). Weights give larger
// shares, spread evenly. Changes of the alive set and of the delays carry the turn on: nobody is served twice while
// another waits, and nothing restarts at the first member.
type roundRobin struct{}

func newRoundRobin(setting) strategy {
	return roundRobin{}
}

// turn is what the rotation remembers.
type turn struct {
	// inUse are the members that take turns, in the order of the last decision.
	inUse []int
	// proven says that inUse are alive members, not the whole list for want of any.
	proven bool
	// due is each member's next turn in virtual time, in which a member of weight w is due every 1/w. Zero is now.
	due map[int]float64
	// current counts the turns taken since the decision; late are turns of the rotation before it that connections
	// took while it was being replaced.
	current, replaced *rotation
	counted           uint64
}

func (s roundRobin) choose(view view, previous memory) choice {
	last, _ := previous.(turn)
	due, taken := last.settle()
	inUse, proven := membersInUse(view, last)
	next := turn{inUse: inUse, proven: proven, due: due, replaced: last.current, counted: taken}
	next.current = newRotation(view, withoutSuspects(view, inUse), due)
	return choice{
		picker:   next.current,
		memory:   next,
		selected: noMember,
	}
}

// membersInUse returns the members that take turns, ordered by delay. While a round is held they stay as long as they
// answer; when one drops out, those that are alive by now join (S7.1, S7.2).
func membersInUse(view view, last turn) (inUse []int, proven bool) {
	var kept map[int]bool
	if view.held && last.proven {
		kept = make(map[int]bool, len(last.inUse))
		for _, index := range last.inUse {
			if member, considered := view.find(index); considered && member.fresh() {
				kept[index] = true
			}
		}
	}
	complete := len(kept) > 0 && len(kept) == len(last.inUse)
	members := make([]candidate, 0, len(view.members))
	for _, member := range view.members {
		if kept[member.index] || member.alive && !complete {
			members = append(members, member)
		}
	}
	if len(members) == 0 {
		// S4.1: before any result, and with nobody alive, all in configuration order.
		return indexes(view.members), false
	}
	slices.SortStableFunc(members, func(a, b candidate) int { return cmp.Compare(a.delay, b.delay) })
	return indexes(members), true
}

// withoutSuspects leaves out members that are being tested because a dial failed, if another is there (S4.7).
func withoutSuspects(view view, members []int) []int {
	trusted := make([]int, 0, len(members))
	for _, index := range members {
		if member, _ := view.find(index); !member.suspect {
			trusted = append(trusted, index)
		}
	}
	if len(trusted) == 0 {
		return members
	}
	return trusted
}

func indexes(members []candidate) []int {
	list := make([]int, len(members))
	for i, member := range members {
		list[i] = member.index
	}
	return list
}

// rotation is an endless sequence of turns that connections take one by one.
type rotation struct {
	sequence []int32
	weights  map[int]int
	_        [64]byte // the counter is written by every core: it shares no cache line with what they read
	taken    atomic.Uint64
}

func (r *rotation) pick(uint64) int {
	return int(r.sequence[(r.taken.Add(1)-1)%uint64(len(r.sequence))])
}

// maxTurns bounds a rotation's memory: weights that need a longer sequence are scaled down, which changes a share by
// less than 1/maxTurns.
const maxTurns = 1 << 16

// newRotation lays out one period of turns: a member of weight w stands in it w times, at equal distances from its due
// time on. due is completed with members that were not there before; they are due now.
func newRotation(view view, members []int, due map[int]float64) *rotation {
	weights := reducedWeights(view, members)
	type occurrence struct {
		at     float64
		member int
	}
	var occurrences []occurrence
	for _, member := range members {
		due[member] = max(due[member], 0) // a member that comes back has saved nothing up
		for k := range weights[member] {
			occurrences = append(occurrences, occurrence{due[member] + float64(k)/float64(weights[member]), member})
		}
	}
	slices.SortStableFunc(occurrences, func(a, b occurrence) int { return cmp.Compare(a.at, b.at) })
	sequence := make([]int32, len(occurrences))
	for i, occurrence := range occurrences {
		sequence[i] = int32(occurrence.member)
	}
	return &rotation{sequence: sequence, weights: weights}
}

// reducedWeights divides the weights by their common divisor, and scales them to maxTurns where the sum is larger.
func reducedWeights(view view, members []int) map[int]int {
	weights := make(map[int]int, len(members))
	divisor, total := 0, 0
	for _, index := range members {
		member, _ := view.find(index)
		weights[index] = member.weight
		for a, b := divisor, member.weight; ; a, b = b, a%b {
			if b == 0 {
				divisor = a
				break
			}
		}
	}
	for index := range weights {
		weights[index] /= divisor
		total += weights[index]
	}
	if total > maxTurns {
		scale := float64(maxTurns) / float64(total)
		for index, weight := range weights {
			weights[index] = max(1, int(math.Round(float64(weight)*scale)))
		}
	}
	return weights
}

// settle returns when each member is due, counted from the member that is due next, after the turns taken so far, and
// how many turns of the current rotation that includes.
func (t turn) settle() (due map[int]float64, taken uint64) {
	due = maps.Clone(t.due)
	if due == nil {
		due = make(map[int]float64)
	}
	if t.current == nil {
		return due, 0
	}
	if t.replaced != nil {
		t.replaced.advance(due, t.counted, t.replaced.taken.Load())
	}
	taken = t.current.taken.Load()
	t.current.advance(due, 0, taken)
	now := math.Inf(1)
	for member := range t.current.weights {
		now = min(now, due[member])
	}
	for member := range due {
		due[member] -= now
	}
	return due, taken
}

// advance moves the due times by the turns from the first (counted from 0) up to but not including the last.
func (r *rotation) advance(due map[int]float64, first, last uint64) {
	period := uint64(len(r.sequence))
	if last-first >= period {
		periods := (last - first) / period
		for member := range r.weights {
			due[member] += float64(periods)
		}
		first += periods * period
	}
	for ; first != last; first++ {
		member := int(r.sequence[first%period])
		due[member] += 1 / float64(r.weights[member])
	}
}
