package test

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"tarazu/test/harness"
)

// leakAddress is where a connection comes from that went past the group, through the first outbound of the list.
var leakAddress = harness.Address(99)

// leaking returns a configuration whose first outbound is `direct`, which a program would fall back to.
func leaking(port int, target *harness.Target, balancer object, members ...object) object {
	configuration := harness.Monitored(harness.Configuration(port, balancer, members...), harness.Monitoring(target, nil))
	direct := object{"type": "direct", "tag": "direct", "inet4_bind_address": leakAddress}
	configuration["outbounds"] = append([]object{direct}, configuration["outbounds"].([]object)...)
	return configuration
}

func expectNoLeak(t *testing.T, process *harness.Process, target *harness.Target) {
	t.Helper()
	if count := target.Requests()[leakAddress] + target.Tests()[leakAddress]; count > 0 {
		t.Errorf("%d connections went past the group", count)
	}
	if lines := process.Log.Find(0, "outbound/direct[direct]"); len(lines) > 0 {
		t.Errorf("went past the group: %s", lines[0])
	}
}

// With all members dead connections fail, and go nowhere else.
func TestField52_AllMembersDead(t *testing.T) {
	t.Parallel()
	for _, strategy := range strategies {
		t.Run(strategy, func(t *testing.T) {
			t.Parallel()
			target, echo := harness.StartTarget(t), harness.StartEcho(t)
			one, two := harness.StartFaulty(t, 2), harness.StartFaulty(t, 3)
			one.Become(harness.Refuse)
			two.Become(harness.Reset)
			port := harness.FreePort(t)
			process := harness.StartReady(t, leaking(port, target, object{"strategy": strategy}, one.Outbound("one"), two.Outbound("two")))
			awaitSilence(process, 0)
			client := harness.NewClient(port)
			client.Timeout = time.Second
			for range 20 {
				if source, err := client.Get(target.URL); err == nil {
					t.Errorf("a connection succeeded, from %s", source)
				}
			}
			if source, err := client.Exchange(echo.Address); err == nil {
				t.Errorf("UDP succeeded, from %s", source)
			}
			expectNoLeak(t, process, target)
		})
	}
}

// With no member that carries UDP an association fails with a clear error (S3.3), and goes nowhere else.
func TestField52_NoMemberForUDP(t *testing.T) {
	t.Parallel()
	for _, strategy := range strategies {
		t.Run(strategy, func(t *testing.T) {
			t.Parallel()
			target, echo := harness.StartTarget(t), harness.StartEcho(t)
			one, two := harness.StartFaulty(t, 2), harness.StartFaulty(t, 3)
			port := harness.FreePort(t)
			process := harness.StartReady(t, leaking(port, target, object{"strategy": strategy}, one.Outbound("one"), two.Outbound("two")))
			awaitUp(process, 0, "one", "two")
			client := harness.NewClient(port)
			client.Timeout = time.Second
			if source, err := client.Exchange(echo.Address); err == nil {
				t.Errorf("UDP succeeded, from %s", source)
			}
			process.Await(0, "ERROR", "UDP", harness.BalancerTag)
			if packets := echo.Packets(); len(packets) > 0 {
				t.Errorf("packets arrived: %v", packets)
			}
			expectNoLeak(t, process, target)
		})
	}
}

// From the first millisecond on every connection goes through a member.
func TestField52_FirstMillisecond(t *testing.T) {
	t.Parallel()
	for _, strategy := range strategies {
		t.Run(strategy, func(t *testing.T) {
			t.Parallel()
			target := harness.StartTarget(t)
			one, two := harness.StartFaulty(t, 2), harness.StartFaulty(t, 3)
			port := harness.FreePort(t)
			process := harness.Start(t, leaking(port, target, object{"strategy": strategy}, one.Outbound("one"), two.Outbound("two")))
			client := harness.NewClient(port)
			succeeded := 0
			deadline := time.Now().Add(soon)
			for succeeded < 50 && time.Now().Before(deadline) {
				source, err := client.Get(target.URL)
				switch {
				case err == nil && (source == one.Address || source == two.Address):
					succeeded++
				case err == nil:
					t.Fatalf("a connection came from %s", source)
				case !errors.Is(err, syscall.ECONNREFUSED): // the inbound does not listen yet
					t.Fatalf("the first connections: %v", err)
				}
			}
			if succeeded < 50 {
				t.Errorf("only %d connections succeeded", succeeded)
			}
			expectNoLeak(t, process, target)
		})
	}
}
