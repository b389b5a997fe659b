package balancer

import (
	"net"
	"sync"
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

func TestTracker_S6_2_InternalAlwaysExternalWhenAsked(t *testing.T) {
	tracker := tracker{load: new(load)}
	inside, _ := pipe(t)
	fromInbound, _ := pipe(t)
	tracker.load.open.Add(2)
	tracker.newConn(t.Context(), inside)
	tracker.newConn(interrupt.ContextWithIsExternalConnection(t.Context()), fromInbound)
	if closed := tracker.closeAll(false); closed != 1 || tracker.load.open.Load() != 1 {
		t.Fatal(closed, tracker.load.open.Load())
	}
	if closed := tracker.closeAll(true); closed != 1 || tracker.load.open.Load() != 0 {
		t.Fatal(closed, tracker.load.open.Load())
	}
	for _, it := range []net.Conn{inside, fromInbound} {
		if _, err := it.Write([]byte{0}); err == nil {
			t.Fatal("a closed connection takes data")
		}
	}
}

func TestTracker_S6_3_NothingIsLeftBehind(t *testing.T) {
	tracker := tracker{load: new(load)}
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
			tracker.closeAll(true)
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
	tracker := tracker{load: new(load)}
	calls := 0
	for range 3 {
		var tracked net.Conn
		tracker.load.open.Add(1)
		tracked = tracker.newConn(t.Context(), reentrant{back: func() {
			if calls++; calls < 10 {
				_ = tracked.Close()
				tracker.closeAll(true)
			}
		}})
	}
	tracker.closeAll(true)
	if open := tracker.load.open.Load(); open != 0 {
		t.Fatal("open: ", open)
	}
}
