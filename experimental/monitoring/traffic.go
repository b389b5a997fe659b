package monitoring

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// traffic says when connections through groups moved something last (S1.4), for all monitors of a box.
type traffic struct {
	epoch time.Time
	last  atomic.Int64 // since epoch
	// waiting says that a monitor waits for the next connection.
	waiting atomic.Bool
	access  sync.Mutex
	woken   chan struct{} // closed, and replaced, by what it waits for
}

func newTraffic() *traffic {
	return &traffic{epoch: time.Now(), woken: make(chan struct{})}
}

// touchEvery bounds how often traffic is written down: every core would write there for every packet otherwise.
const touchEvery = 10 * time.Millisecond

// touch reports traffic of a connection that was opened with ctx.
func (t *traffic) touch(ctx context.Context) {
	now := time.Since(t.epoch)
	if now-time.Duration(t.last.Load()) < touchEvery && !t.waiting.Load() || IsTest(ctx) {
		return
	}
	t.last.Store(int64(now))
	if t.waiting.Load() {
		t.wake()
	}
}

func (t *traffic) wake() {
	t.access.Lock()
	defer t.access.Unlock()
	t.waiting.Store(false)
	close(t.woken)
	t.woken = make(chan struct{})
}

// quiet is how long nothing moved.
func (t *traffic) quiet() time.Duration {
	return time.Since(t.epoch) - time.Duration(t.last.Load())
}

// next returns what is closed when something moves from now on.
func (t *traffic) next() <-chan struct{} {
	t.access.Lock()
	defer t.access.Unlock()
	t.waiting.Store(true)
	return t.woken
}

// testKey marks the context of a test.
type testKey struct{}

func withTest(ctx context.Context) context.Context {
	return context.WithValue(ctx, testKey{}, true)
}

// IsTest reports whether ctx is a test's: what it opens, also by way of a group, is no traffic (S1.4).
func IsTest(ctx context.Context) bool {
	return ctx.Value(testKey{}) != nil
}
