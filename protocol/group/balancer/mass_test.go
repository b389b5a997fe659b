//go:build unix

package balancer

import (
	"context"
	"net"
	"os"
	"runtime"
	"testing"
	"time"

	N "github.com/sagernet/sing/common/network"
	"golang.org/x/sys/unix"
)

// nothing is a connection that costs nothing.
type nothing struct{ net.Conn }

func (*nothing) Close() error { return nil }

// copied is what a connection keeps alive while it is copied both ways.
type copied struct {
	ctx            context.Context
	client, remote net.Conn
	counters       [2][]N.CountFunc
}

// BenchmarkMemory measures what tracking costs for each of 100,000 connections that are open (S6.3).
func BenchmarkMemory(b *testing.B) {
	const open = 100_000
	tracker := &tracker{load: new(load), monitor: new(touches), retest: func() {}}
	upstream, inbound := new(nothing), new(nothing)
	connections := make([]copied, open)
	var bytes float64
	for b.Loop() {
		clear(connections)
		before := inUse()
		for i := range connections {
			client := accepted(context.Background(), inbound)
			it := copied{ctx: client.context(), client: client}
			it.remote = tracker.newConn(it.ctx, upstream)
			_, it.counters[0] = N.UnwrapCountReader(it.remote, nil)
			_, it.counters[1] = N.UnwrapCountWriter(it.remote, nil)
			connections[i] = it
		}
		bytes = float64(inUse()-before) / open
		for _, it := range connections {
			_ = it.remote.Close()
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(bytes, "B/connection")
}

// BenchmarkMassClose closes 100,000 connections of a member that died, half of them sockets where that many can be open,
// and meanwhile opens others elsewhere: the longest of those is what a pick may have to wait, beside what it has to on
// this machine when nothing is closed.
func BenchmarkMassClose(b *testing.B) {
	const open = 100_000
	var undisturbed, disturbed, total time.Duration
	// Opening allocates nothing here: the collector's pauses are another matter.
	ctx, place, upstream, alive := context.Background(), new(link), new(nothing), &tracker{load: new(load)}
	longestUntil := func(ended <-chan struct{}) (longest time.Duration) {
		for {
			select {
			case <-ended:
				return longest
			default:
				opening := time.Now()
				alive.add(ctx, place, upstream)
				place.remove()
				longest = max(longest, time.Since(opening))
			}
		}
	}
	sockets := 0
	for b.Loop() {
		dead := &tracker{load: new(load)}
		pairs := socketPairs(b, open/2)
		sockets = len(pairs)
		for i := range open {
			var upstream net.Conn = new(nothing)
			if i < len(pairs) {
				upstream = pairs[i].near
			}
			dead.newConn(context.Background(), upstream)
		}
		runtime.GC()
		quiet := make(chan struct{})
		time.AfterFunc(100*time.Millisecond, func() { close(quiet) })
		undisturbed = max(undisturbed, longestUntil(quiet))
		began := time.Now()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			closeAll(dead.take(true))
		}()
		disturbed = max(disturbed, longestUntil(ended))
		total += time.Since(began)
		for _, pair := range pairs {
			_ = pair.far.Close()
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(total.Milliseconds())/float64(b.N), "ms/100000")
	b.ReportMetric(float64(sockets), "sockets")
	b.ReportMetric(float64(disturbed.Microseconds()), "longest-µs")
	b.ReportMetric(float64(undisturbed.Microseconds()), "longest-undisturbed-µs")
}

type pair struct{ near, far net.Conn }

// socketPairs opens connections, as many as the limit of descriptors allows.
func socketPairs(b *testing.B, count int) []pair {
	limit := unix.Rlimit{Cur: uint64(2*count + 1000), Max: uint64(2*count + 1000)}
	if unix.Setrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
			b.Fatal(err)
		}
		count = min(count, int(limit.Cur)/2-500)
	}
	pairs := make([]pair, count)
	for i := range pairs {
		ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err != nil {
			b.Fatal(err)
		}
		pairs[i] = pair{connOf(b, ends[0]), connOf(b, ends[1])}
	}
	return pairs
}

func connOf(b *testing.B, descriptor int) net.Conn {
	file := os.NewFile(uintptr(descriptor), "")
	defer file.Close()
	conn, err := net.FileConn(file)
	if err != nil {
		b.Fatal(err)
	}
	return conn
}
