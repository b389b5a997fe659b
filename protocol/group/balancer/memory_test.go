package balancer

import (
	"context"
	"net"
	"runtime"
	"testing"

	N "github.com/sagernet/sing/common/network"
)

// nothing is a connection that costs nothing.
type nothing struct{ net.Conn }

func (*nothing) Close() error { return nil }

// heap is what is in use, with nothing that could be collected.
func heap() uint64 {
	var memory runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&memory)
	return memory.HeapAlloc
}

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
		before := heap()
		for i := range connections {
			client := accepted(context.Background(), inbound)
			it := copied{ctx: client.context(), client: client}
			it.remote = tracker.newConn(it.ctx, upstream)
			_, it.counters[0] = N.UnwrapCountReader(it.remote, nil)
			_, it.counters[1] = N.UnwrapCountWriter(it.remote, nil)
			connections[i] = it
		}
		bytes = float64(heap()-before) / open
		for _, it := range connections {
			_ = it.remote.Close()
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(bytes, "B/connection")
}
