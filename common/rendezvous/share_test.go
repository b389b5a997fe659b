package rendezvous

import (
	"math"
	"testing"
)

const draws = 100_000

// expectShares checks with Pearson's χ² that the counts follow the weights. The limit is the value that a fair draw
// exceeds once in a thousand times, by Wilson and Hilferty's approximation; the keys are fixed, so it never varies.
func expectShares(t *testing.T, counts, weights []int) {
	t.Helper()
	total, weight := 0, 0
	for i := range counts {
		total, weight = total+counts[i], weight+weights[i]
	}
	chiSquared := 0.0
	for i, count := range counts {
		expected := float64(total) * float64(weights[i]) / float64(weight)
		chiSquared += (float64(count) - expected) * (float64(count) - expected) / expected
	}
	freedom := float64(len(counts) - 1)
	limit := freedom * math.Pow(1-2/(9*freedom)+3.0902*math.Sqrt(2/(9*freedom)), 3)
	t.Logf("χ² = %.1f, limit %.1f", chiSquared, limit)
	if chiSquared > limit {
		t.Errorf("counts %v for weights %v: χ² = %.1f, limit %.1f", counts, weights, chiSquared, limit)
	}
}

func TestShare_S4_2_FollowsTheWeights(t *testing.T) {
	for _, it := range []struct {
		name    string
		weights []int
	}{
		{"ten equal", repeat(10)},
		{"a hundred equal", repeat(100)},
		{"one, two and five", []int{1, 2, 5}},
		{"one among heavy ones", []int{1, 100, 100}},
		{"many of two kinds", append(repeat(50), []int{3, 3, 3, 3, 3, 3, 3, 3, 3, 3}...)},
	} {
		t.Run(it.name, func(t *testing.T) {
			ring := New("group", members(it.weights...))
			counts := make([]int, len(it.weights))
			eachKey(draws, func(key uint64) { counts[ring.Pick(key)]++ })
			expectShares(t, counts, it.weights)
		})
	}
}

// Keys are hashes, but nothing goes wrong with a caller's plain numbers.
func TestShare_S4_2_OfConsecutiveKeys(t *testing.T) {
	ring := New("group", members(repeat(10)...))
	counts := make([]int, 10)
	for key := range uint64(draws) {
		counts[ring.Pick(key)]++
	}
	expectShares(t, counts, repeat(10))
}

func TestShare_S4_2_ADeadMembersKeysSpreadByWeight(t *testing.T) {
	weights := []int{4, 1, 2, 5}
	ring := New("group", members(weights...))
	counts := make([]int, 3)
	eachKey(draws, func(key uint64) {
		if ring.Pick(key) == 0 {
			counts[ring.Next(key, 0)-1]++
		}
	})
	expectShares(t, counts, weights[1:])
}

// TestNestedSalt draws from a group inside a group. Both list the same tags, so only the salt keeps the inner choice
// from following the outer one.
func TestNestedSalt_S4_2_InnerChoiceIsIndependent(t *testing.T) {
	const n = 4
	list := members(repeat(n)...)
	outer, inner := New("outer", list), New("inner", list)
	counts := make([]int, n*n)
	eachKey(draws, func(key uint64) { counts[outer.Pick(key)*n+inner.Pick(key)]++ })
	expectShares(t, counts, repeat(n*n))
}

func TestNestedSalt_S4_2_SaltAndTagDoNotRunTogether(t *testing.T) {
	if hashOf("ab", "c", 0) == hashOf("a", "bc", 0) {
		t.Error("the group ab with the member c hashes like the group a with the member bc")
	}
	if hashOf("a", "b", 0) == hashOf("a", "b", 1) {
		t.Error("the first and the second occurrence of a tag hash alike")
	}
}
