package rendezvous

import (
	"fmt"
	"testing"
)

func BenchmarkPick(b *testing.B) {
	for _, n := range []int{10, 1_000} {
		unequal := repeat(n)
		for i := range unequal {
			unequal[i] += i % 5
		}
		for name, weights := range map[string][]int{"equal": repeat(n), "weighted": unequal} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				ring := New("group", members(weights...))
				b.ReportAllocs()
				key := uint64(0)
				for b.Loop() {
					key += 0x9e3779b97f4a7c15
					ring.Pick(key)
				}
			})
		}
	}
}

func BenchmarkNext(b *testing.B) {
	ring := New("group", members(repeat(1_000)...))
	b.ReportAllocs()
	key := uint64(0)
	for b.Loop() {
		key += 0x9e3779b97f4a7c15
		ring.Next(key, ring.Pick(key))
	}
}

// BenchmarkBest has nine of ten members out.
func BenchmarkBest(b *testing.B) {
	for name, weights := range map[string][]int{"equal": repeat(1_000), "weighted": append(repeat(999), 2)} {
		b.Run(name, func(b *testing.B) {
			ring := New("group", members(weights...))
			b.ReportAllocs()
			key := uint64(0)
			for b.Loop() {
				key += 0x9e3779b97f4a7c15
				ring.Best(key, func(i int) bool { return i%10 == 0 })
			}
		})
	}
}
