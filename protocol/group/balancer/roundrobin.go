package balancer

import (
	"cmp"
	"maps"
	"math"
	"slices"
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
	// due is each member's next turn in virtual time, in which a member of weight w is due every 1/w, whoever else takes
	// turns. Zero is now.
	due map[int]float64
	// current counts the turns taken since the decision; late are turns of the rotation before it that connections
	// took while it was being replaced.
	current, replaced *rotation
	counted           uint64
	// latest took the last turn before the decision.
	latest int
}

func (s roundRobin) choose(view view, previous memory) choice {
	last, _ := previous.(turn)
	due, taken, latest := last.settle()
	inUse, proven := membersInUse(view, last)
	next := turn{inUse: inUse, proven: proven, due: due, replaced: last.current, counted: taken, latest: latest}
	next.current = newRotation(view, withoutSuspects(view, inUse), due, latest)
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

// settle returns when each member is due, counted from the member that is due next, after the turns taken so far; how
// many turns of the current rotation that includes, and who took the latest.
func (t turn) settle() (due map[int]float64, taken uint64, latest int) {
	due = maps.Clone(t.due)
	if due == nil {
		due = make(map[int]float64)
	}
	if t.current == nil {
		return due, 0, noMember
	}
	if t.replaced != nil {
		t.replaced.advance(due, t.counted, t.replaced.taken.Load())
	}
	taken = t.current.taken.Load()
	t.current.advance(due, 0, taken)
	now := math.Inf(1)
	for member := range t.current.turns {
		now = min(now, due[member])
	}
	for member := range due {
		due[member] -= now
	}
	latest = t.latest
	if taken > 0 {
		latest = int(t.current.sequence[(taken-1)%uint64(len(t.current.sequence))])
	}
	return due, taken, latest
}
