package monitoring

import (
	"errors"
	"slices"
	"testing"
	"time"

	"tarazu/adapter"
	"tarazu/option"
)

// hourly are settings that leave a story to itself after the first round.
func hourly() option.MonitoringOptions {
	return option.MonitoringOptions{Interval: duration(time.Hour), IdleTimeout: duration(0)}
}

func TestMonitor_S2_5_NetworkChangeStartsARoundAtOnce(t *testing.T) {
	watch(t, hourly(), []string{"a", "b"}, func(t *testing.T, m *handle, n *network, l *listener) {
		n.set("b", 3*time.Second, nil)
		m.start(t.Context())
		pass(time.Second)
		expect(t, l.told(), "started", "round, held: false", "round a up 10")
		// b is being tested on the old network; what comes of it is nobody's.
		n.set("b", 3*time.Second, errRefused)
		m.leaveNetwork(false)
		n.set("b", 20*time.Millisecond, nil)
		pass(settleTime)
		expect(t, slices.Sorted(slices.Values(n.tests())), "a", "a", "b", "b")
		pass(time.Second)
		// S7.4: this round is not held.
		expect(t, l.told(), "round, held: false", "round a up 10", "round b up 20", "round end")
		pass(time.Hour)
		if lines := l.told(); lines[0] != "round, held: true" {
			t.Fatal(lines)
		}
	})
}

func TestMonitor_S2_5_ManyChangesAreOneRound(t *testing.T) {
	watch(t, hourly(), []string{"a"}, func(t *testing.T, m *handle, n *network, l *listener) {
		m.start(t.Context())
		pass(time.Minute)
		l.told()
		for range 20 { // each group of a box says it
			m.leaveNetwork(false)
		}
		m.DialFailed("a") // between two networks nothing is tested
		pass(time.Minute)
		expect(t, l.told(), "round, held: false", "round a up 10", "round end")
	})
}

// FIELD case 6: the network is away for two rounds; nothing is recorded, and the first round after it starts at once.
func TestMonitor_S2_5_PausedRunsNoTests(t *testing.T) {
	watch(t, option.MonitoringOptions{IdleTimeout: duration(0)}, []string{"a", "b"}, func(t *testing.T, m *handle, n *network, l *listener) {
		m.start(t.Context())
		pass(4 * time.Minute)
		l.told()
		n.tests()
		n.set("a", time.Second, errRefused)
		n.set("b", time.Second, errRefused)
		m.DialFailed("a")
		pass(500 * time.Millisecond)
		expect(t, n.tests(), "a")
		m.leaveNetwork(true)
		m.leaveNetwork(true)
		m.DialFailed("a")
		m.Test(t.Context(), "group") // returns, for nothing is tested
		pass(10 * time.Minute)
		m.leaveNetwork(false) // a change of interface does not wake a device
		pass(time.Minute)
		expect(t, n.tests())
		expect(t, l.told(), "retest a, ended: false", "retest a, ended: true")
		if result := m.Result("a"); result.State != adapter.StateUp {
			t.Fatal(result)
		}
		n.set("a", time.Millisecond, nil)
		n.set("b", 2*time.Millisecond, nil)
		m.resume()
		m.resume()
		pass(settleTime + time.Second)
		expect(t, l.told(), "round, held: false", "round a up 1", "round b up 2", "round end")
	})
}

func TestMonitor_S2_5_PausedFromTheStart(t *testing.T) {
	watch(t, hourly(), []string{"a"}, func(t *testing.T, m *handle, n *network, l *listener) {
		m.leaveNetwork(true)
		m.start(t.Context())
		pass(time.Hour)
		expect(t, l.told(), "started")
		m.resume()
		pass(time.Second)
		expect(t, l.told(), "round, held: false", "round a up 10", "round end")
	})
}

// A test that does not let go of a network that is gone is not held against its outbound.
func TestMonitor_S2_5_HangingTestOfTheOldNetwork(t *testing.T) {
	watch(t, hourly(), []string{"a"}, func(t *testing.T, m *handle, n *network, l *listener) {
		hang := make(chan struct{})
		n.hangs["a"] = hang
		m.start(t.Context())
		pass(time.Second)
		m.leaveNetwork(false)
		n.access.Lock()
		n.hangs = nil
		n.access.Unlock()
		pass(time.Second)
		expect(t, l.told(), "started", "round, held: false", "round, held: false", "round a up 10", "round end")
		close(hang)
		pass(time.Second)
		expect(t, l.told())
	})
}

func TestMonitor_S2_5a_NobodyAnswersIsSaidOnce(t *testing.T) {
	options := option.MonitoringOptions{Interval: duration(time.Minute), IdleTimeout: duration(0)}
	watch(t, options, []string{"a", "b"}, func(t *testing.T, m *handle, n *network, l *listener) {
		log := new(warnings)
		m.logger = log
		n.set("a", time.Millisecond, errRefused)
		n.set("b", 2*time.Millisecond, errors.New("reset"))
		m.start(t.Context())
		pass(10*time.Minute + time.Second)
		expect(t, log.lines, "no member answers; is the network up? 2 failed: refused")
		n.set("b", time.Millisecond, nil)
		pass(time.Minute)
		n.set("b", time.Millisecond, errRefused)
		pass(5 * time.Minute)
		if len(log.lines) != 2 {
			t.Fatal(log.lines)
		}
		ends := make(map[string]int)
		for _, it := range l.told() {
			ends[it]++
		}
		if ends["round end"] != 1 || ends["round end, nobody answered"] != 16 {
			t.Fatal(ends)
		}
	})
}

// Outcomes of our own machine are neither: nothing is said of the network.
func TestMonitor_S2_5a_OwnFailuresSayNothing(t *testing.T) {
	watch(t, hourly(), []string{"a"}, func(t *testing.T, m *handle, n *network, l *listener) {
		log := new(warnings)
		m.logger = log
		n.set("a", time.Millisecond, localFailures[0])
		m.start(t.Context())
		pass(time.Second)
		expect(t, log.lines)
	})
}
