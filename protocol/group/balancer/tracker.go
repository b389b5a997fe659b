package balancer

import (
	"context"
	"io"
	"runtime"
	"sync"
	"sync/atomic"

	"tarazu/adapter"
	"tarazu/experimental/monitoring"

	box "github.com/sagernet/sing-box/adapter"
	"github.com/sagernet/sing-box/common/interrupt"
)

// tracker keeps the open connections of one member on one network (S6.1). It is split into shards, so that connections
// that open and close at the same time seldom meet at a lock.
type tracker struct {
	// load is the member's; it counted a connection when that was given its member.
	load *load
	// monitor is told of traffic (S1.4).
	monitor adapter.Monitor
	// retest has the member tested (S5.3a).
	retest func()
	next   atomic.Uint32
	shards [trackerShards]shard
}

const trackerShards = 8

// shard is a doubly linked ring of open connections; its head is no connection itself.
type shard struct {
	access sync.Mutex
	head   link
	_      [32]byte // a shard and its neighbour share no cache line
}

// link is a connection's place in its ring. A connection that is not in one has no neighbours.
type link struct {
	next, previous *link
	tracker        *tracker
	upstream       io.Closer
	shard          uint8
	// external says that the connection came from an inbound (S6.2), isTest that it is a test's, which is no traffic (S1.4).
	external, isTest bool
}

// add puts a connection into the tracker, which closes upstream when a rule says so.
func (t *tracker) add(ctx context.Context, l *link, upstream io.Closer) {
	l.tracker, l.upstream = t, upstream
	l.external, l.isTest = isExternal(ctx), monitoring.IsTest(ctx)
	l.shard = uint8(t.next.Add(1) % trackerShards)
	shard := &t.shards[l.shard]
	shard.access.Lock()
	defer shard.access.Unlock()
	head := &shard.head
	if head.next == nil {
		head.next, head.previous = head, head
	}
	l.next, l.previous = head, head.previous
	head.previous.next, head.previous = l, l
}

// isExternal reports whether a connection is opened for one of an inbound (S6.2): a group says so, or, where the group is
// the detour of an outbound, the connection's metadata, which a lookup of a name has too, with its question.
func isExternal(ctx context.Context) bool {
	if interrupt.IsExternalConnectionFromContext(ctx) {
		return true
	}
	metadata := box.ContextFrom(ctx)
	return metadata != nil && metadata.InboundType != "" && metadata.QueryType == 0
}

// moved tells the monitor of traffic (S1.4).
func (l *link) moved(int64) {
	if !l.isTest {
		l.tracker.monitor.Touch(context.Background())
	}
}

// remove takes a connection out and reports whether it was there; again and again does no harm.
func (l *link) remove() bool {
	shard := &l.tracker.shards[l.shard]
	shard.access.Lock()
	linked := l.next != nil
	if linked {
		l.unlink()
	}
	shard.access.Unlock()
	if linked {
		l.tracker.load.open.Add(-1)
	}
	return linked
}

func (l *link) unlink() {
	l.previous.next, l.next.previous = l.next, l.previous
	l.next, l.previous = nil, nil
}

// take takes out the connections opened inside the box and, with external, those from inbounds too (S6.2), for
// closeAll.
func (t *tracker) take(external bool) (doomed []*link) {
	for i := range t.shards {
		shard := &t.shards[i]
		shard.access.Lock()
		for l := shard.head.next; l != nil && l != &shard.head; {
			next := l.next
			if external || !l.external {
				l.unlink()
				doomed = append(doomed, l)
			}
			l = next
		}
		shard.access.Unlock()
	}
	t.load.open.Add(-int64(len(doomed)))
	return doomed
}

// closers is how many connections are closed at the same time: some say goodbye first, which can take.
const closers = 16

// closeAll closes connections that were taken out. No lock is held meanwhile, so that their Close may call back.
func closeAll(doomed []*link) {
	var next atomic.Int64
	var closing sync.WaitGroup
	for range min(closers, len(doomed)) {
		closing.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(doomed)); i = next.Add(1) - 1 {
				_ = doomed[i].upstream.Close()
				runtime.Gosched() // who opens a connection meanwhile comes first
			}
		})
	}
	closing.Wait()
}
