// Package rendezvous chooses a member for a key by weighted rendezvous hashing, also called highest random weight
// (SPEC S4.2): every member draws a score from its tag and the key, and the best score wins.
//
// The choice depends on nothing but the salt, the tags, the weights and the key: not on the order of the list, not on
// the machine, not on the time. All arithmetic is on integers, because floating point is not the same everywhere: a
// compiler may fuse a multiplication and an addition on one processor and not on the next, and math.Log is assembly on
// some. Two clients of one configuration therefore agree on every key, and a member that comes or goes moves only the
// keys that it takes or leaves.
//
// It knows nothing of liveness: callers walk on with Next, or say with Best which members count.
package rendezvous

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/cespare/xxhash/v2"
)

// Member is one entry of a group's list. A tag that is listed twice is two members (S1.3).
type Member struct {
	Tag string
	// Weight is the member's share against the others'; less than 1 counts as 1.
	Weight int
}

// Ring is an immutable list of members to choose from. It may be used by many goroutines at once.
type Ring struct {
	// places are the members in the order of their tags, so that nothing depends on the order of the list.
	places []place
	// positions leads from a member's index in the list to its place.
	positions []int
	// equal says that all weights are the same, when the raw scores decide alone.
	equal bool
}

type place struct {
	hash   uint64
	weight uint64
	index  int
}

// New builds a ring. The salt is the tag of the group: without it a group and the group nested in it would choose in
// step, and the members of the inner one would get uneven shares.
func New(salt string, members []Member) *Ring {
	r := &Ring{
		places:    make([]place, len(members)),
		positions: make([]int, len(members)),
		equal:     true,
	}
	seen := make(map[string]uint64, len(members))
	for i, member := range members {
		r.places[i] = place{
			hash:   hashOf(salt, member.Tag, seen[member.Tag]),
			weight: uint64(max(member.Weight, 1)),
			index:  i,
		}
		seen[member.Tag]++
		r.equal = r.equal && r.places[i].weight == r.places[0].weight
	}
	slices.SortStableFunc(r.places, func(a, b place) int {
		return cmp.Compare(members[a.index].Tag, members[b.index].Tag)
	})
	for position, p := range r.places {
		r.positions[p.index] = position
	}
	return r
}

// Len tells how many members the ring has.
func (r *Ring) Len() int {
	return len(r.places)
}

// hashOf hashes a member's tag. The length of the salt stands in front, so that no two groups and tags run together;
// the occurrence tells apart the members that share a tag.
func hashOf(salt, tag string, occurrence uint64) uint64 {
	framed := binary.LittleEndian.AppendUint64(nil, uint64(len(salt)))
	framed = append(framed, salt...)
	framed = binary.LittleEndian.AppendUint64(framed, occurrence)
	framed = append(framed, tag...)
	return xxhash.Sum64(framed)
}
