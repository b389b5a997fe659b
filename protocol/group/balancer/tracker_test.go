package balancer

import (
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sagernet/sing-box/common/interrupt"
)

// pipe returns the near end of a connection and whether it was closed.
func pipe(t *testing.T) (near net.Conn, ended func() bool) {
	near, far := net.Pipe()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_, _ = far.Read(make([]byte, 1))
	}()
	t.Cleanup(func() {
		_ = far.Close()
		_ = near.Close()
		<-closed
	})
	return near, func() bool {
		select {
		case <-closed:
			return true
		default:
			return false
		}
	}
}

// closed closes connections that were taken out and counts them.
func closed(doomed []*link) int {
	closeAll(doomed)
	return len(doomed)
}

func TestTracker_S6_2_InternalAlwaysExternalWhenAsked(t *testing.T) {
	tracker := &tracker{load: new(load)}
	inside, _ := pipe(t)
	fromInbound, _ := pipe(t)
	tracker.load.open.Add(2)
	tracker.newConn(t.Context(), inside)
	tracker.newConn(interrupt.ContextWithIsExternalConnection(t.Context()), fromInbound)
	if closed := closed(tracker.take(false)); closed != 1 || tracker.load.open.Load() != 1 {
		t.Fatal(closed, tracker.load.open.Load())
	}
	if closed := closed(tracker.take(true)); closed != 1 || tracker.load.open.Load() != 0 {
		t.Fatal(closed, tracker.load.open.Load())
	}
	for _, it := range []net.Conn{inside, fromInbound} {
		if _, err := it.Write([]byte{0}); err == nil {
			t.Fatal("a closed connection takes data")
		}
	}
}

func TestTracker_S6_3_NothingIsLeftBehind(t *testing.T) {
	tracker := &tracker{load: new(load)}
	var clients sync.WaitGroup
	for range 8 {
		clients.Go(func() {
			for range 2000 {
				near, far := net.Pipe()
				tracker.load.open.Add(1)
				tracked := tracker.newConn(t.Context(), near)
				_ = tracked.Close()
				_ = tracked.Close()
				_ = far.Close()
			}
		})
	}
	clients.Go(func() {
		for range 100 {
			closeAll(tracker.take(true))
		}
	})
	clients.Wait()
	if open := tracker.load.open.Load(); open != 0 {
		t.Fatal("open: ", open)
	}
	for i := range tracker.shards {
		if head := &tracker.shards[i].head; head.next != nil && head.next != head {
			t.Fatal("a closed connection is still in its ring")
		}
	}
}

// reentrant is a connection whose Close calls back into the group.
type reentrant struct {
	net.Conn
	back func()
}

func (r reentrant) Close() error {
	r.back()
	return nil
}

func TestTracker_S6_3_CloseMayCallBack(t *testing.T) {
	tracker := &tracker{load: new(load)}
	var calls atomic.Int32
	for range 3 {
		var tracked net.Conn
		tracker.load.open.Add(1)
		tracked = tracker.newConn(t.Context(), reentrant{back: func() {
			if calls.Add(1) < 10 {
				_ = tracked.Close()
				closeAll(tracker.take(true))
			}
		}})
	}
	closeAll(tracker.take(true))
	if open := tracker.load.open.Load(); open != 0 {
		t.Fatal("open: ", open)
	}
}

// 100,000 connections of a dead member are closed while others are opened and chosen elsewhere. How long that takes is the
// benchmark's to say.
func TestTracker_S6_3_MassClose(t *testing.T) {
	const open = 100_000
	dead, alive := &tracker{load: new(load)}, &tracker{load: new(load)}
	upstreams := make([]countedConn, open)
	dead.load.open.Add(open)
	for i := range upstreams {
		dead.newConn(interrupt.ContextWithIsExternalConnection(t.Context()), &upstreams[i])
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		closeAll(dead.take(true))
	}()
	for closed := false; !closed; {
		select {
		case <-done:
			closed = true
		default:
			alive.load.open.Add(1)
			_ = alive.newConn(t.Context(), new(countedConn)).Close()
		}
	}
	if dead.load.open.Load() != 0 || alive.load.open.Load() != 0 {
		t.Fatal(dead.load.open.Load(), alive.load.open.Load())
	}
	for i := range upstreams {
		if closed := upstreams[i].closed.Load(); closed != 1 {
			t.Fatal("a connection was closed ", closed, " times")
		}
	}
}

// countedConn counts how often it is closed.
type countedConn struct {
	net.Conn
	closed atomic.Int32
}

func (c *countedConn) Close() error {
	c.closed.Add(1)
	return nil
}

// After a million connections, with every kind of end, nothing is left: no goroutine, no memory.
func TestTracker_S6_3_AMillionConnections(t *testing.T) {
	const each = 100_000
	tracker := &tracker{load: new(load), monitor: new(touches), retest: func() {}}
	external := interrupt.ContextWithIsExternalConnection(t.Context())
	many := func(end func(i int)) {
		tracker.load.open.Add(each)
		for i := range each {
			end(i)
		}
	}
	packets, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer packets.Close()
	runtime.GC()
	goroutines, before := runtime.NumGoroutine(), inUse()
	for range 2 {
		many(func(int) { _ = tracker.newConn(external, new(countedConn)).Close() })
		many(func(int) {
			tracked := tracker.newConn(external, new(countedConn))
			_, _ = tracked.Close(), tracked.Close()
		})
		many(func(i int) { // by a rule, a thousand at a time
			tracker.newConn(external, new(countedConn))
			if i%1000 == 999 {
				closeAll(tracker.take(true))
			}
		})
		many(func(i int) { // the client's side, this one first or the other
			client := accepted(t.Context(), new(countedConn))
			tracked := tracker.newConn(client.context(), new(countedConn)).(*conn)
			tracked.countRead(1)
			if i%2 == 0 {
				_, _ = client.Close(), tracked.Close()
			} else {
				_, _, _ = tracked.CloseWrite(), tracked.Close(), client.Close()
			}
		})
		many(func(int) {
			association := tracker.newPacketConn(external, packets).(*packetConn)
			association.remove() // its socket serves them all
		})
	}
	if open := tracker.load.open.Load(); open != 0 {
		t.Error("open: ", open)
	}
	if after := runtime.NumGoroutine(); after > goroutines {
		t.Errorf("%d goroutines, %d before", after, goroutines)
	}
	if after := inUse(); after > before+1<<20 {
		t.Errorf("%d bytes, %d before", after, before)
	}
	if len(tracker.take(true)) != 0 {
		t.Error("connections are left in their rings")
	}
}

// inUse is the memory in use, with nothing that could be collected.
func inUse() uint64 {
	var memory runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&memory)
	return memory.HeapAlloc
}
