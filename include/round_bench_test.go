package include_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"tarazu/option"
	"tarazu/protocol/group/balancer"
	"tarazu/test/harness"

	"github.com/sagernet/sing-box/adapter"
	"github.com/sagernet/sing-box/common/urltest"
)

// BenchmarkTests compares the monitor's tests of 1,000 members in 20 groups with a bare loop of urltest.URLTest over the
// same members, with as many at a time, in turn. ratio is the monitor's speed by the loop's.
func BenchmarkTests(b *testing.B) {
	const members, groups, workers = 1000, 20, 10
	target := harness.StartTarget(b)
	tags := make([]string, members)
	outbounds := make([]harness.JSON, 0, members+groups)
	for i := range tags {
		tags[i] = fmt.Sprint("member-", i)
		outbounds = append(outbounds, harness.JSON{"type": "direct", "tag": tags[i]})
	}
	for i := range groups {
		outbounds = append(outbounds, harness.JSON{"type": "balancer", "tag": fmt.Sprint("group-", i), "outbounds": tags, "strategy": option.Strategies[i%7]})
	}
	ctx := context.Background()
	instance := startBox(b, harness.Monitored(
		harness.JSON{"outbounds": outbounds}, harness.Monitoring(target, harness.JSON{"interval": "1h", "workers": workers}),
	))
	it, _ := instance.Outbound().Outbound("group-0")
	group := it.(*balancer.Outbound)
	if delays, _ := group.URLTest(ctx); len(delays) != members { // the first round is over
		b.Fatal(len(delays), " members answer")
	}
	loop := func() {
		queue := make(chan adapter.Outbound)
		var workersDone sync.WaitGroup
		for range workers {
			workersDone.Go(func() {
				for detour := range queue {
					if _, err := urltest.URLTest(ctx, target.TestURL, detour); err != nil {
						b.Error(err)
					}
				}
			})
		}
		for _, tag := range tags {
			detour, _ := instance.Outbound().Outbound(tag)
			queue <- detour
		}
		close(queue)
		workersDone.Wait()
	}
	var bare, monitored time.Duration
	most := 0
	for b.Loop() {
		began := time.Now()
		loop()
		bare += time.Since(began)
		began = time.Now()
		if delays, err := group.URLTest(ctx); err != nil || len(delays) != members {
			b.Fatal(len(delays), err)
		}
		monitored += time.Since(began)
		most = max(most, runtime.NumGoroutine())
	}
	perSecond := func(took time.Duration) float64 { return members * float64(b.N) / took.Seconds() }
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(perSecond(bare), "loop-tests/s")
	b.ReportMetric(perSecond(monitored), "tests/s")
	b.ReportMetric(bare.Seconds()/monitored.Seconds(), "ratio")
}

// BenchmarkRest measures what a box with a balancer over 100 members needs at rest, over one with a selector.
func BenchmarkRest(b *testing.B) {
	target := harness.StartTarget(b)
	rest := func(kind string) float64 {
		var tags []string
		var outbounds []harness.JSON
		for i := range 100 {
			tags = append(tags, fmt.Sprint("member-", i))
			outbounds = append(outbounds, harness.JSON{"type": "direct", "tag": tags[i]})
		}
		outbounds = append(outbounds, harness.JSON{"type": kind, "tag": "group", "outbounds": tags})
		configuration := harness.JSON{"outbounds": outbounds}
		if kind == "balancer" {
			outbounds[100]["monitoring"] = harness.Monitoring(target, harness.JSON{"interval": "1h"})
		}
		before := heap()
		instance := startBox(b, configuration)
		defer instance.Close()
		if it, _ := instance.Outbound().Outbound("group"); kind == "balancer" {
			if _, err := it.(*balancer.Outbound).URLTest(context.Background()); err != nil {
				b.Fatal(err)
			}
		}
		return float64(heap() - before)
	}
	var more []float64
	for b.Loop() {
		selector := rest("selector")
		more = append(more, rest("balancer")-selector)
	}
	slices.Sort(more)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(more[len(more)/2]/1024, "kB-more")
}

// heap is the memory in use, with nothing that could be collected.
func heap() uint64 {
	var memory runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&memory)
	return memory.HeapAlloc
}
