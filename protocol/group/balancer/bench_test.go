package balancer

import (
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
	strategy, err := newStrategy(options)
	if err != nil {
		tb.Fatal(err)
	}
	_, actions := decide(newConfig(strategy, options), newState(members), nil, causeEvent, time.Now())
	return actions.snapshot.pickers[networkTCP]
}

func TestPick_S5_1_AllocatesNothing(t *testing.T) {
	for name := range strategies {
		picker := chosen(t, option.BalancerOutboundOptions{Strategy: name}, 100)
		if allocations := testing.AllocsPerRun(1000, func() { picker.pick() }); allocations != 0 {
			t.Errorf("%s: %v allocations a pick", name, allocations)
		}
	}
}

func BenchmarkPick(b *testing.B) {
	for name := range strategies {
		for _, count := range []int{10, 1000} {
			picker := chosen(b, option.BalancerOutboundOptions{Strategy: name}, count)
			b.Run(name+"/"+strconv.Itoa(count)+"/alone", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					picker.pick()
				}
			})
			b.Run(name+"/"+strconv.Itoa(count)+"/all-cores", func(b *testing.B) {
				b.ReportAllocs()
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						picker.pick()
					}
				})
			})
		}
	}
}
