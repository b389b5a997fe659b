package balancer

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"tarazu/adapter"
	"tarazu/option"
)

// chosen is a group's picker for TCP with this many members, all alive.
func chosen(tb testing.TB, options option.BalancerOutboundOptions, count int) picker {
	members := make([]member, count)
	for i := range members {
		members[i] = member{
			tag: strconv.Itoa(i), weight: 1, udp: true,
			result: adapter.Result{State: adapter.StateUp, Delay: uint16(10 + i%90)},
		}
	}
	strategy := newStrategy(setting{options: options, tag: "group", members: members, loads: make([]load, count), random: rand.IntN})
	_, actions := decide(newConfig(strategy, options), newState(members), nil, causeEvent, time.Now())
	return actions.snapshot.pickers[networkTCP]
}

func TestPick_S5_1_AllocatesNothing(t *testing.T) {
	for name := range strategies {
		picker := chosen(t, option.BalancerOutboundOptions{Strategy: name}, 100)
		key := uint64(0)
		pick := func() {
			key++
			picker.pick(key % 8 * keyStep) // few keys: all are known after the first eight
		}
		for range 8 {
			pick()
		}
		if allocations := testing.AllocsPerRun(1000, pick); allocations != 0 {
			t.Errorf("%s: %v allocations a pick", name, allocations)
		}
	}
}

// Connections of the benchmark have this many keys, far apart.
const (
	benchKeys = 500
	keyStep   = 0x9E3779B97F4A7C15
)

func BenchmarkPick(b *testing.B) {
	for _, name := range slices.Sorted(maps.Keys(strategies)) {
		for _, count := range []int{10, 1000} {
			picker := chosen(b, option.BalancerOutboundOptions{Strategy: name}, count)
			b.Run(name+"/"+strconv.Itoa(count)+"/alone", func(b *testing.B) {
				b.ReportAllocs()
				key := uint64(0)
				for b.Loop() {
					key += keyStep
					picker.pick(key % benchKeys * keyStep)
				}
			})
			b.Run(name+"/"+strconv.Itoa(count)+"/new-keys", func(b *testing.B) {
				b.ReportAllocs()
				key := uint64(0)
				for b.Loop() {
					key += keyStep // none comes twice
					picker.pick(key)
				}
			})
			b.Run(name+"/"+strconv.Itoa(count)+"/all-cores", func(b *testing.B) {
				b.ReportAllocs()
				b.RunParallel(func(pb *testing.PB) {
					key := uint64(0)
					for pb.Next() {
						key += keyStep
						picker.pick(key % benchKeys * keyStep)
					}
				})
			})
		}
	}
}
