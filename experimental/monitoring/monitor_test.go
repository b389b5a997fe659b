package monitoring

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"tarazu/adapter"
	"tarazu/option"

	"github.com/sagernet/sing/common/json/badoption"
	"github.com/sagernet/sing/common/logger"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

var errRefused = errors.New("refused")

// network is what tests of outbounds meet: how long each takes, and how it ends.
type network struct {
	access sync.Mutex
	delays map[string]time.Duration
	errors map[string]error
	hangs  map[string]chan struct{} // ignores its context until closed
	begun  []string
	open   int
	most   int
}

// newNetwork has the first of some outbounds answer after 10 ms, the next after 20 ms, and so on.
func newNetwork(tags ...string) *network {
	n := &network{delays: make(map[string]time.Duration), errors: make(map[string]error), hangs: make(map[string]chan struct{})}
	for i, tag := range tags {
		n.delays[tag] = time.Duration(10*(i+1)) * time.Millisecond
	}
	return n
}

func (n *network) set(tag string, delay time.Duration, err error) {
	n.access.Lock()
	defer n.access.Unlock()
	n.delays[tag], n.errors[tag] = delay, err
}

func (n *network) probe(ctx context.Context, tag string) (time.Duration, error) {
	n.access.Lock()
	n.begun = append(n.begun, tag)
	n.open++
	n.most = max(n.most, n.open)
	delay, err, hang := n.delays[tag], n.errors[tag], n.hangs[tag]
	n.access.Unlock()
	defer func() {
		n.access.Lock()
		n.open--
		n.access.Unlock()
	}()
	if hang != nil {
		<-hang
	}
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(delay):
		return delay, err
	}
}

// tests returns the tags tested since the last call, in the order in which their tests began.
func (n *network) tests() []string {
	synctest.Wait()
	n.access.Lock()
	defer n.access.Unlock()
	begun := n.begun
	n.begun = nil
	return begun
}

// listener is a group that writes down what it is told.
type listener struct {
	access sync.Mutex
	lines  []string
}

func (l *listener) Tag() string { return "group" }

func (l *listener) Deliver(event adapter.Event) {
	l.access.Lock()
	defer l.access.Unlock()
	switch event.Kind {
	case adapter.EventStarted:
		l.lines = append(l.lines, "started")
	case adapter.EventRoundStart:
		l.lines = append(l.lines, fmt.Sprint("round, held: ", event.Held))
	case adapter.EventRoundEnd:
		line := "round end"
		if !event.Answered {
			line += ", nobody answered"
		}
		l.lines = append(l.lines, line)
	case adapter.EventReach:
		l.lines = append(l.lines, "reach")
	case adapter.EventRetest:
		l.lines = append(l.lines, fmt.Sprint("retest ", event.Tag, ", ended: ", event.Ended))
	case adapter.EventResult:
		where := "outside"
		if event.Round {
			where = "round"
		}
		l.lines = append(l.lines, fmt.Sprint(where, " ", event.Tag, " ", event.Result.State, " ", event.Result.Delay, event.Result.Reason))
	}
}

// warnings is a log of which only these are kept.
type warnings struct {
	logger.ContextLogger
	lines []string
}

func (w *warnings) Debug(...any) {}

func (w *warnings) Warn(words ...any) {
	w.lines = append(w.lines, fmt.Sprint(words...))
}

func (l *listener) told() []string {
	synctest.Wait()
	l.access.Lock()
	defer l.access.Unlock()
	lines := l.lines
	l.lines = nil
	return lines
}

// watch runs a story of a monitor in virtual time. A member takes as long as delays say; more in change.
func watch(t *testing.T, options option.MonitoringOptions, targets []string, story func(t *testing.T, m *handle, n *network, l *listener)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		settings, err := option.ResolveMonitoring(&options, nil, false)
		if err != nil {
			t.Fatal(err)
		}
		settings.Jitter = 0
		n := newNetwork(targets...)
		m := newMonitor(testsOf(settings), newTraffic(), logger.NOP())
		m.targets = func([]string) []string { return slices.Clone(targets) }
		m.probe = n.probe
		l := new(listener)
		h := &handle{Monitor: m, judge: m.judge(settings.Rise, settings.Fall), window: settings.DebounceWindow}
		h.Subscribe(l)
		story(t, h, n, l)
		m.close()
	})
}

func expect(t *testing.T, found []string, expected ...string) {
	t.Helper()
	if !slices.Equal(found, expected) {
		t.Fatalf("found %q, not %q", found, expected)
	}
}

func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestMonitor_S2_5_FirstRoundWhenTheBoxHasStarted(t *testing.T) {
	watch(t, option.MonitoringOptions{}, []string{"a", "b"}, func(t *testing.T, m *handle, n *network, l *listener) {
		pass(time.Hour)
		expect(t, n.tests())
		n.set("b", time.Millisecond, errRefused)
		m.start(t.Context())
		pass(time.Second)
		expect(t, l.told(), "started", "round, held: false", "round b down 0refused", "round a up 10", "round end")
	})
}

func TestMonitor_S1_4_Interval(t *testing.T) {
	watch(t, option.MonitoringOptions{}, []string{"a"}, func(t *testing.T, m *handle, n *network, l *listener) {
		m.start(t.Context())
		pass(5*time.Minute - time.Millisecond)
		expect(t, n.tests(), "a")
		pass(time.Millisecond)
		expect(t, n.tests(), "a")
		expect(t, l.told()[4:], "round, held: true")
	})
}

func TestMonitor_S1_4_JitterStaysWithin(t *testing.T) {
	m := newMonitor(option.MonitoringSettings{Interval: 100 * time.Second, Jitter: 0.1, Workers: 1}, newTraffic(), logger.NOP())
	least, most := time.Hour, time.Duration(0)
	for range 1000 {
		least, most = min(least, m.interval()), max(most, m.interval())
	}
	if least < 90*time.Second || most > 110*time.Second || most-least < 15*time.Second {
		t.Fatal(least, most)
	}
}

func TestMonitor_S1_4_WorkersAndHangingMembers(t *testing.T) {
	tags := make([]string, 30)
	for i := range tags {
		tags[i] = fmt.Sprint(i)
	}
	// FIELD case 51: half of them tarpits, 10 workers, timeout 1 s: all known within 4 s.
	options := option.MonitoringOptions{URLTestTimeout: duration(time.Second), Interval: duration(time.Hour)}
	watch(t, options, tags, func(t *testing.T, m *handle, n *network, l *listener) {
		for i := range 15 {
			n.set(fmt.Sprint(2*i), time.Hour, nil)
		}
		m.start(t.Context())
		pass(4 * time.Second)
		if told := l.told(); told[len(told)-1] != "round end" || len(told) != 33 {
			t.Fatal(told)
		}
		if n.most != 10 {
			t.Fatal(n.most, " tests at the same time")
		}
		if result := m.Result("0"); result.State != adapter.StateDown || result.Reason != "no answer within 1s" {
			t.Fatal(result)
		}
	})
}

// 1,000 members, of a round, of a group's test, of foreign failures: tests and goroutines are as many as the workers allow.
func TestMonitor_S1_4_BoundedByWorkers(t *testing.T) {
	tags := make([]string, 1000)
	for i := range tags {
		tags[i] = fmt.Sprint(i)
	}
	watch(t, hourly(), tags, func(t *testing.T, m *handle, n *network, l *listener) {
		for _, tag := range tags {
			n.set(tag, 10*time.Millisecond, nil)
		}
		most := 0
		var access sync.Mutex
		m.probe = func(ctx context.Context, tag string) (time.Duration, error) {
			access.Lock()
			most = max(most, runtime.NumGoroutine())
			access.Unlock()
			return n.probe(ctx, tag)
		}
		before := runtime.NumGoroutine()
		m.start(t.Context())
		pass(2 * time.Second)
		m.Test(t.Context(), "group")
		foreign := make([]change, len(tags))
		for i, tag := range tags {
			foreign[i].tag = tag
		}
		m.hear(foreign, true)
		pass(2 * time.Second)
		if count := len(n.tests()); count != 3000 {
			t.Error(count, " tests")
		}
		const workers = 10
		if n.most > workers {
			t.Error(n.most, " tests at the same time")
		}
		// A worker, its test, and a few that wait for all.
		if more := most - before; more > 2*workers+10 {
			t.Error(more, " goroutines more than before")
		}
	})
}

func TestMonitor_S2_6_CachedFirstFastestFirst(t *testing.T) {
	options := option.MonitoringOptions{Workers: new(1)}
	watch(t, options, []string{"a", "b", "c", "d"}, func(t *testing.T, m *handle, n *network, l *listener) {
		m.remember(map[string]success{"b": {90, time.Now()}, "d": {30, time.Now()}})
		m.start(t.Context())
		pass(time.Second)
		expect(t, n.tests(), "d", "b", "a", "c")
	})
}

func TestMonitor_S2_7_CloseWaitsForNoTest(t *testing.T) {
	watch(t, option.MonitoringOptions{}, []string{"a", "b"}, func(t *testing.T, m *handle, n *network, l *listener) {
		n.set("a", time.Hour, nil)
		hang := make(chan struct{})
		n.hangs["b"] = hang // does not even listen to its context
		m.start(t.Context())
		pass(time.Second)
		before := time.Now()
		m.close()
		if took := time.Since(before); took >= time.Second {
			t.Fatal("close took ", took)
		}
		l.told()
		close(hang)
		pass(time.Hour)
		expect(t, l.told()) // nothing is told after the end
	})
}

func TestMonitor_S1_4_IdleTimeout(t *testing.T) {
	watch(t, option.MonitoringOptions{}, []string{"a"}, func(t *testing.T, m *handle, n *network, l *listener) {
		m.start(t.Context())
		pass(7 * time.Minute)
		m.Touch(t.Context())
		pass(24 * time.Hour)
		expect(t, n.tests(), "a", "a", "a", "a") // at 0, 5, 10 and 15 min; at 20 min it was idle for 13
		m.Touch(t.Context())
		expect(t, n.tests(), "a") // the first connection wakes it at once
	})
	watch(t, option.MonitoringOptions{IdleTimeout: duration(0)}, []string{"a"}, func(t *testing.T, m *handle, n *network, l *listener) {
		m.start(t.Context())
		pass(24 * time.Hour)
		if tests := len(n.tests()); tests != 24*12+1 {
			t.Fatal(tests, " tests in a day")
		}
	})
}

func TestMonitor_S5_3_DialFailureTestsAtOnceAndOnce(t *testing.T) {
	watch(t, option.MonitoringOptions{}, []string{"a"}, func(t *testing.T, m *handle, n *network, l *listener) {
		m.start(t.Context())
		pass(time.Minute)
		n.tests()
		l.told()
		n.set("a", time.Second, errRefused)
		for range 50 { // FIELD case 7: failures in parallel cause one test
			m.DialFailed("a")
		}
		pass(500 * time.Millisecond)
		m.DialFailed("a")
		pass(time.Second)
		expect(t, n.tests(), "a")
		expect(t, l.told(), "retest a, ended: false", "outside a down 10refused", "retest a, ended: true")
	})
}

// FIELD case 8: a torrent client whose destinations refuse.
func TestMonitor_S5_3_PauseGrowsWhileTheMemberIsFine(t *testing.T) {
	watch(t, option.MonitoringOptions{Interval: duration(time.Hour)}, []string{"a"}, func(t *testing.T, m *handle, n *network, l *listener) {
		m.start(t.Context())
		pass(time.Minute)
		n.tests()
		began := time.Now()
		var at []time.Duration
		for time.Since(began) < 2*time.Minute {
			m.DialFailed("a")
			pass(5 * time.Millisecond)
			if tests := n.tests(); len(tests) > 0 {
				at = append(at, time.Since(began).Truncate(100*time.Millisecond))
			}
		}
		// Pauses of 1, 2, 4, 8, 16, 30 and 30 s.
		if !slices.Equal(at, []time.Duration{0, time.Second, 3 * time.Second, 7 * time.Second, 15 * time.Second, 31 * time.Second, 61 * time.Second, 91 * time.Second}) {
			t.Fatal(at)
		}
		pass(time.Minute) // a quiet minute
		m.DialFailed("a")
		pass(time.Second + 20*time.Millisecond)
		m.DialFailed("a")
		expect(t, n.tests(), "a", "a")
	})
}

func TestMonitor_S2_5a_OwnFailureCountsForNobody(t *testing.T) {
	watch(t, option.MonitoringOptions{}, []string{"a"}, func(t *testing.T, m *handle, n *network, l *listener) {
		n.set("a", time.Millisecond, fmt.Errorf("dial tcp: %w", syscall.ENETUNREACH))
		m.start(t.Context())
		pass(time.Second)
		expect(t, l.told(), "started", "round, held: false", "round end, nobody answered")
		if result := m.Result("a"); result.State != adapter.StateUntested {
			t.Fatal(result)
		}
	})
}

func TestMonitor_S2_1_UnsubscribedIsToldNothing(t *testing.T) {
	watch(t, option.MonitoringOptions{}, []string{"a"}, func(t *testing.T, m *handle, n *network, l *listener) {
		other := new(listener)
		unsubscribe := m.Subscribe(other)
		unsubscribe()
		m.start(t.Context())
		pass(time.Second)
		expect(t, other.told())
	})
}

func TestMonitor_HangingTestHoldsBackOnlyItself(t *testing.T) {
	options := option.MonitoringOptions{URLTestTimeout: duration(time.Second), Interval: duration(time.Minute)}
	watch(t, options, []string{"a", "b"}, func(t *testing.T, m *handle, n *network, l *listener) {
		hang := make(chan struct{})
		n.hangs["a"] = hang
		m.start(t.Context())
		pass(3*time.Minute + time.Second)
		expect(t, slices.Sorted(slices.Values(n.tests())), "a", "b", "b", "b", "b") // at most one test is open there
		if reason := m.Result("a").Reason; reason != "the previous test still hangs" {
			t.Fatal(reason)
		}
		close(hang)
		n.access.Lock()
		n.hangs = nil
		n.access.Unlock()
		pass(time.Minute)
		if result := m.Result("a"); result.State != adapter.StateUp {
			t.Fatal(result)
		}
	})
}

func duration(d time.Duration) *badoption.Duration {
	return new(badoption.Duration(d))
}
