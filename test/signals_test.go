package test

import (
	"sync"
	"syscall"
	"testing"
	"time"

	"tarazu/test/harness"
)

// SIGHUP with a configuration that is wrong keeps the one that runs; with a good one it applies.
func TestRun_Reload(t *testing.T) {
	t.Parallel()
	target := harness.StartTarget(t)
	one, two := harness.StartFaulty(t, 2), harness.StartFaulty(t, 3)
	port := harness.FreePort(t)
	with := func(member object) object {
		return harness.Monitored(harness.Configuration(port, nil, member), harness.Monitoring(target, nil))
	}
	process := harness.StartReady(t, with(one.Outbound("one")))
	awaitUp(process, 0, "one")
	client := harness.NewClient(port)

	wrong := with(two.Outbound("two"))
	wrong["outbounds"].([]object)[0]["strategy"] = "best"
	mark := process.Log.Mark()
	process.Rewrite(wrong)
	process.Signal(syscall.SIGHUP)
	process.Await(mark, "reload: the old configuration stays", harness.BalancerTag, "best", "lowest-delay")
	expectShares(t, "a wrong configuration", client.Shares(t, target.URL, 10), equally(10, one.Address))

	process.Rewrite(with(two.Outbound("two")))
	process.Signal(syscall.SIGHUP)
	process.Await(mark, "sing-box started")
	awaitUp(process, mark, "two")
	expectShares(t, "a good configuration", client.Shares(t, target.URL, 10), equally(10, two.Address))
	process.Stop()
	if status := process.Status(); status != 0 {
		t.Errorf("exit status %d", status)
	}
}

// Reloads leave one monitor, whose tests are the only ones under way; SIGTERM waits neither for tests that hang nor for
// connections that are being opened (S2.7).
func TestField31_StopAmidTests(t *testing.T) {
	t.Parallel()
	target := harness.StartTarget(t)
	tarpits, members, _, _ := startMembers(t, 20)
	for _, tarpit := range tarpits {
		tarpit.Become(harness.Tarpit)
	}
	port := harness.FreePort(t)
	process := harness.StartReady(t, harness.Monitored(
		harness.Configuration(port, nil, members...),
		harness.Monitoring(target, object{"interval": "1h", "url_test_timeout": "1m", "workers": len(members)}),
	))
	expectOneTestEach := func(when string) {
		t.Helper()
		for _, tarpit := range tarpits {
			harness.Eventually(t, soon, when+": one test is open", func() bool { return tarpit.Tests()+tarpit.Connections() > 0 && tarpit.Open() == 1 })
		}
	}
	expectOneTestEach("at the start")
	for range 10 {
		mark := process.Log.Mark()
		process.Signal(syscall.SIGHUP)
		process.Await(mark, "sing-box started")
	}
	expectOneTestEach("after ten reloads")

	client := harness.NewClient(port)
	var dials sync.WaitGroup
	for range 50 {
		dials.Go(func() {
			if _, err := client.Get(target.URL); err == nil {
				t.Error("a connection through a tarpit succeeded")
			}
		})
	}
	harness.Eventually(t, soon, "50 dials are in progress", func() bool {
		open := 0
		for _, tarpit := range tarpits {
			open += tarpit.Open()
		}
		return open == len(tarpits)+50
	})
	// A second is the rule; a busy machine is given as much again.
	if took := process.Stop(); took > 2*time.Second {
		t.Errorf("the program took %v to end", took)
	}
	if status := process.Status(); status != 0 {
		t.Errorf("exit status %d", status)
	}
	dials.Wait()
}
