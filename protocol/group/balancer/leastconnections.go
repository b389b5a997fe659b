package balancer

import "sync/atomic"

// leastConnections gives a connection to the alive member with the fewest open ones through this group, divided by its
// weight; ties go in turn (S4.7). Before any result, and with no member alive, all members count. A member that is being
// tested because a dial failed is passed over if another is there.
type leastConnections struct {
	loads []load
	turns *[networks]atomic.Uint64
}

// load counts the open connections of a member through the group, TCP and UDP, those being opened included.
type load struct {
	open atomic.Int64
	_    [56]byte // a load and its neighbour share no cache line
}

func newLeastConnections(setting setting) strategy {
	return leastConnections{loads: setting.loads, turns: new([networks]atomic.Uint64)}
}

func (s leastConnections) choose(view view, _ memory) choice {
	inUse, _ := membersInUse(view, turn{})
	picker := &leastPicker{loads: s.loads, turn: &s.turns[networkTCP]}
	if view.udp {
		picker.turn = &s.turns[networkUDP]
	}
	for _, index := range withoutSuspects(view, inUse) {
		member, _ := view.find(index)
		picker.members = append(picker.members, weighted{index, int64(member.weight)})
	}
	return choice{picker: picker, selected: noMember, reserves: true}
}

type weighted struct {
	index  int
	weight int64
}

type leastPicker struct {
	loads   []load
	members []weighted
	turn    *atomic.Uint64
}

// pick counts the connection at once: a storm of connections that open at the same time spreads as evenly as one after
// another. The member that is taken had the fewest when it was looked at, and loads that rise meanwhile only make that
// more true; if its own rose, all are looked at again.
func (p *leastPicker) pick(uint64) int {
	for {
		start := int((p.turn.Add(1) - 1) % uint64(len(p.members)))
		least, fewest := weighted{index: noMember}, int64(0)
		for i := range p.members {
			it := p.members[(start+i)%len(p.members)]
			if open := p.loads[it.index].open.Load(); least.index == noMember || open*least.weight < fewest*it.weight {
				least, fewest = it, open
			}
		}
		if p.loads[least.index].open.CompareAndSwap(fewest, fewest+1) {
			return least.index
		}
	}
}
