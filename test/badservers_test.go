package test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"tarazu/test/harness"
)

// A bad server costs the connections that it was given, and no others (S5.2, S5.3); every process of these tests is
// searched for a panic when it ends.
func TestBadServers_CostOnlyTheirOwn(t *testing.T) {
	t.Parallel()
	for _, mode := range []harness.Mode{harness.Refuse, harness.Tarpit, harness.Silent, harness.Reset, harness.Garbage} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			target := harness.StartTarget(t)
			one, two, bad := harness.StartFaulty(t, 2), harness.StartFaulty(t, 3), harness.StartFaulty(t, 4)
			port := harness.FreePort(t)
			process := harness.StartReady(t, harness.Monitored(
				harness.Configuration(port, object{"delay_acceptable_ratio": wide}, one.Outbound("one"), bad.Outbound("bad"), two.Outbound("two")),
				// Rounds find nothing out: the connections have to.
				harness.Monitoring(target, object{"interval": "1h", "url_test_timeout": "500ms"}),
			))
			awaitUp(process, 0, "one", "two", "bad")
			bad.Become(mode)
			failures := manyRequests(port, target, 60)
			given := len(process.Log.Find(0, "connection through member bad"))
			if given == 0 {
				t.Error("the bad server was given no connection")
			}
			if len(failures) > given {
				t.Errorf("%d connections failed, of which the bad server had %d: %v", len(failures), given, failures)
			}
			served := target.Requests()
			if total := served[one.Address] + served[two.Address]; total != 60-given || served[bad.Address] != 0 {
				t.Errorf("the others served %d connections of %d that they had: %v", total, 60-given, served)
			}
			if !process.Running() {
				t.Error("the program ended")
			}
		})
	}
}

// manyRequests makes requests, some at a time, and returns those that failed.
func manyRequests(port int, target *harness.Target, count int) (failures []error) {
	client := harness.NewClient(port)
	client.Timeout = 2 * time.Second
	var access sync.Mutex
	var requests sync.WaitGroup
	slots := make(chan struct{}, 10)
	for i := range count {
		slots <- struct{}{}
		requests.Go(func() {
			defer func() { <-slots }()
			if _, err := client.Get(target.URL); err != nil {
				access.Lock()
				defer access.Unlock()
				failures = append(failures, fmt.Errorf("connection %d: %w", i, err))
			}
		})
	}
	requests.Wait()
	return failures
}

// A server that answers HTTP itself, with an error, is an answer unless `expected_status` says otherwise (S1.4).
func TestField13_ErrorStatus(t *testing.T) {
	t.Parallel()
	for name, expected := range map[string][]string{"any status": nil, "expected status": {"204"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target := harness.StartTarget(t)
			good, bad := harness.StartFaulty(t, 2), harness.StartFaulty(t, 3)
			bad.Become(harness.ErrorStatus)
			port := harness.FreePort(t)
			process := harness.StartReady(t, harness.Monitored(
				harness.Configuration(port, object{"delay_acceptable_ratio": wide}, good.Outbound("good"), bad.Outbound("bad")),
				harness.Monitoring(target, object{"expected_status": expected}),
			))
			awaitUp(process, 0, "good")
			if expected == nil {
				awaitUp(process, 0, "bad")
				return
			}
			process.Await(0, "member bad is now down", "503")
			expectShares(t, name, harness.NewClient(port).Shares(t, target.URL, 10), equally(10, good.Address))
			if bad.Tests() == 0 {
				t.Error("the faulty server saw no test")
			}
		})
	}
}
