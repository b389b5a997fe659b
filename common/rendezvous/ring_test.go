package rendezvous

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// members returns members of the given weights with the tags m0, m1, …
func members(weights ...int) []Member {
	list := make([]Member, len(weights))
	for i, weight := range weights {
		list[i] = Member{Tag: fmt.Sprintf("m%d", i), Weight: weight}
	}
	return list
}

// repeat returns n equal weights.
func repeat(n int) []int {
	return slices.Repeat([]int{1}, n)
}

// eachKey calls check with n keys, the same in every run.
func eachKey(n int, check func(key uint64)) {
	keys := rand.New(rand.NewPCG(4, 2))
	for range n {
		check(keys.Uint64())
	}
}

// order returns the tags in a key's order.
func order(r *Ring, list []Member, key uint64) []string {
	var tags []string
	for i := r.Pick(key); i != None; i = r.Next(key, i) {
		tags = append(tags, list[i].Tag)
	}
	return tags
}

func TestRing_S4_2_AnyListOrder(t *testing.T) {
	for _, weights := range [][]int{repeat(10), {1, 2, 5, 1, 9, 1, 3, 2, 2, 7}} {
		list := members(weights...)
		ring := New("group", list)
		shuffled := slices.Clone(list)
		rand.New(rand.NewPCG(1, 1)).Shuffle(len(list), func(i, j int) {
			shuffled[i], shuffled[j] = shuffled[j], shuffled[i]
		})
		other := New("group", shuffled)
		eachKey(10_000, func(key uint64) {
			if a, b := order(ring, list, key), order(other, shuffled, key); !slices.Equal(a, b) {
				t.Fatalf("weights %v, key %#x: %v, and with the list in another order %v", weights, key, a, b)
			}
		})
	}
}

func TestRing_S4_2_NextVisitsEveryMemberOnce(t *testing.T) {
	for _, weights := range [][]int{{1}, repeat(20), {1, 1000, 3, 1, 7}} {
		list := members(weights...)
		ring := New("group", list)
		eachKey(1_000, func(key uint64) {
			tags := order(ring, list, key)
			slices.Sort(tags)
			if tags = slices.Compact(tags); len(tags) != len(list) {
				t.Fatalf("weights %v, key %#x: visited %v", weights, key, tags)
			}
		})
	}
}

func TestRing_S4_2_BestIsTheFirstUsableOfTheOrder(t *testing.T) {
	for _, weights := range [][]int{repeat(12), {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8}} {
		list := members(weights...)
		ring := New("group", list)
		eachKey(5_000, func(key uint64) {
			usable := func(i int) bool { return key>>i&1 == 1 }
			want := ring.Pick(key)
			for want != None && !usable(want) {
				want = ring.Next(key, want)
			}
			if got := ring.Best(key, usable); got != want {
				t.Fatalf("weights %v, key %#x: member %d, want %d", weights, key, got, want)
			}
		})
	}
}

func TestRing_S1_3_ATagListedTwiceIsTwoMembers(t *testing.T) {
	list := []Member{{Tag: "a"}, {Tag: "b"}, {Tag: "a"}}
	ring := New("group", list)
	counts := make([]int, len(list))
	eachKey(100_000, func(key uint64) { counts[ring.Pick(key)]++ })
	expectShares(t, counts, []int{1, 1, 1})
}

func TestRing_CollidingHashesAreInTheOrderOfTheTags(t *testing.T) {
	for _, list := range [][]Member{{{"b", 1}, {"a", 1}}, {{"a", 1}, {"b", 1}}, {{"b", 2}, {"a", 2}, {"c", 1}}} {
		ring := New("group", list)
		for position := range ring.places {
			ring.places[position].hash = 7
		}
		eachKey(100, func(key uint64) {
			if tag := list[ring.Pick(key)].Tag; tag != "a" {
				t.Fatalf("%v: %s, want a", list, tag)
			}
			if tags := order(ring, list, key); !slices.IsSorted(tags) || len(tags) != len(list) {
				t.Fatalf("%v: order %v", list, tags)
			}
		})
	}
}

func TestRing_NoMember(t *testing.T) {
	ring := New("group", nil)
	if ring.Len() != 0 || ring.Pick(1) != None || ring.Best(1, func(int) bool { return true }) != None {
		t.Fatal("an empty ring picks a member")
	}
	if New("group", members(1, 1)).Best(1, func(int) bool { return false }) != None {
		t.Fatal("a member was picked that is not usable")
	}
}

func TestRing_WeightBelowOneIsOne(t *testing.T) {
	ring, plain := New("group", members(0, -3, 2)), New("group", members(1, 1, 2))
	eachKey(10_000, func(key uint64) {
		if ring.Pick(key) != plain.Pick(key) {
			t.Fatalf("key %#x: %d, want %d", key, ring.Pick(key), plain.Pick(key))
		}
	})
}

func TestRing_S4_2_NoAllocation(t *testing.T) {
	for _, weights := range [][]int{repeat(50), {1, 2, 5}} {
		ring := New("group", members(weights...))
		key := uint64(0)
		if n := testing.AllocsPerRun(1_000, func() {
			key++
			first := ring.Pick(key)
			ring.Next(key, first)
			ring.Best(key, func(i int) bool { return i != first })
		}); n != 0 {
			t.Errorf("weights %v: %v allocations", weights, n)
		}
	}
}
