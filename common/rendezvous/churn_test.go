package rendezvous

import (
	"math"
	"slices"
	"testing"
)

// moves counts the keys whose member differs between two lists, and fails unless each of them leaves or joins the one
// member that may lose or gain.
func moves(t *testing.T, before, after []Member, loses, gains string) (moved int) {
	t.Helper()
	from, to := New("group", before), New("group", after)
	eachKey(draws, func(key uint64) {
		old, now := before[from.Pick(key)].Tag, after[to.Pick(key)].Tag
		if old == now {
			return
		}
		moved++
		if (loses != "" && old != loses) || (gains != "" && now != gains) {
			t.Fatalf("key %#x moved from %s to %s", key, old, now)
		}
	})
	return moved
}

func TestChurn_S4_2_RemovingAMemberMovesExactlyItsKeys(t *testing.T) {
	for _, weights := range [][]int{repeat(10), {1, 2, 5, 3}, {1, 7, 1}} {
		list := members(weights...)
		for i, removed := range list {
			held := 0
			ring := New("group", list)
			eachKey(draws, func(key uint64) {
				if ring.Pick(key) == i {
					held++
				}
			})
			rest := slices.Delete(slices.Clone(list), i, i+1)
			if moved := moves(t, list, rest, removed.Tag, ""); moved != held {
				t.Errorf("weights %v: removing %s moved %d keys of its %d", weights, removed.Tag, moved, held)
			}
		}
	}
}

func TestChurn_S4_2_AddingAMemberMovesOnlyItsShare(t *testing.T) {
	for _, n := range []int{1, 3, 9, 19} {
		list := members(repeat(n + 1)...)
		added := list[n].Tag
		moved := moves(t, list[:n], list, "", added)
		want := float64(draws) / float64(n+1)
		t.Logf("%d members and one more: %d keys of %d moved, %.1f %% off", n, moved, draws, 100*(float64(moved)/want-1))
		if math.Abs(float64(moved)/want-1) > 0.05 {
			t.Errorf("%d members and one more: %d keys moved, want %.0f", n, moved, want)
		}
	}
}

// Weights that become equal, or cease to be, change the way of deciding but not the decision.
func TestChurn_S4_2_AWeightMovesOnlyItsMembersKeys(t *testing.T) {
	for _, it := range []struct{ before, after []int }{
		{[]int{1, 1, 1}, []int{1, 2, 1}},
		{[]int{3, 3, 3}, []int{3, 30, 3}},
		{[]int{1, 2, 5}, []int{1, 3, 5}},
	} {
		before, after := members(it.before...), members(it.after...)
		if moves(t, before, after, "", "m1") == 0 || moves(t, after, before, "m1", "") == 0 {
			t.Errorf("weights %v to %v: no key moved", it.before, it.after)
		}
	}
}

func TestChurn_S4_2_OnlyTheProportionOfWeightsCounts(t *testing.T) {
	for _, it := range []struct{ before, after []int }{
		{repeat(5), []int{7, 7, 7, 7, 7}},
		{[]int{1, 2, 5}, []int{1000, 2000, 5000}},
	} {
		if moved := moves(t, members(it.before...), members(it.after...), "", ""); moved != 0 {
			t.Errorf("weights %v to %v: %d keys moved", it.before, it.after, moved)
		}
	}
}
