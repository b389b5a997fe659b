package test

import (
	"testing"
	"time"

	"tarazu/test/harness"
)

// The first of the list is of no use, and another member holds a worker for long: a strategy works as soon as it knows a
// good one, not at the round's end.
func TestField2_FirstMemberOfNoUse(t *testing.T) {
	t.Parallel()
	for _, strategy := range strategies {
		for _, first := range []string{"block", "dead"} {
			t.Run(strategy+", first "+first, func(t *testing.T) {
				t.Parallel()
				target := harness.StartTarget(t)
				good, dead, tarpit := harness.StartFaulty(t, 2), harness.StartFaulty(t, 3), harness.StartFaulty(t, 4)
				dead.Become(harness.Refuse)
				tarpit.Become(harness.Tarpit)
				members := []object{dead.Outbound("first"), good.Outbound("good"), tarpit.Outbound("tarpit")}
				if first == "block" {
					members[0] = object{"type": "block", "tag": "first"}
				}
				port := harness.FreePort(t)
				process := harness.StartReady(t, harness.Monitored(
					harness.Configuration(port, object{"strategy": strategy, "delay_acceptable_ratio": wide}, members...),
					harness.Monitoring(target, object{"url_test_timeout": "1m", "workers": 2}),
				))
				awaitUp(process, 0, "good")
				awaitDown(process, 0, "first")
				expectShares(t, "during the round", harness.NewClient(port).Shares(t, target.URL, 12), equally(12, good.Address))
				if tarpit.Open() != 1 {
					t.Errorf("%d connections to the tarpit are open, not its test alone", tarpit.Open())
				}
			})
		}
	}
}

// No result for seconds after the start: connections succeed, and round-robin spreads them.
func TestField3_NoResultYet(t *testing.T) {
	t.Parallel()
	for _, strategy := range strategies {
		t.Run(strategy, func(t *testing.T) {
			t.Parallel()
			target := harness.StartTarget(t)
			_, members, _, sources := startMembers(t, 3)
			for _, source := range sources {
				target.DelayTests(source, time.Minute)
			}
			port := harness.FreePort(t)
			process := harness.StartReady(t, harness.Monitored(
				harness.Configuration(port, object{"strategy": strategy}, members...),
				harness.Monitoring(target, object{"url_test_timeout": "2m"}),
			))
			target.AwaitRounds(t, 1, sources...)
			shares := harness.NewClient(port).Shares(t, target.URL, 30)
			if strategy == "round-robin" {
				expectShares(t, "before any result", shares, equally(30, sources...))
			}
			if lines := process.Log.Find(0, "is now"); len(lines) > 0 {
				t.Errorf("a result came too early for the test: %s", lines[0])
			}
		})
	}
}

// A slow member is tested first, a fast one later, by one worker: the fast one is in use by the round's end, also when
// the group is in another, and after a restart.
func TestField11_SlowMemberTestedFirst(t *testing.T) {
	t.Parallel()
	for _, nested := range []bool{false, true} {
		name := map[bool]string{false: "alone", true: "nested"}[nested]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target := harness.StartTarget(t)
			dead, slow, fast := harness.StartFaulty(t, 2), harness.StartFaulty(t, 3), harness.StartFaulty(t, 4)
			dead.Become(harness.Refuse)
			slow.Delay(500 * time.Millisecond)
			port := harness.FreePort(t)
			configuration := harness.Configuration(port, object{"strategy": "lowest-delay"},
				dead.Outbound("dead"), slow.Outbound("slow"), fast.Outbound("fast"))
			if nested {
				outer := object{"type": "balancer", "tag": "outer", "strategy": "lowest-delay", "outbounds": []string{harness.BalancerTag}}
				configuration["outbounds"] = append([]object{outer}, configuration["outbounds"].([]object)...)
				configuration["route"] = object{"final": "outer"}
			}
			// One round only, so that what it ends with stays; a cache, as after a restart of an app.
			harness.Monitored(configuration, harness.Monitoring(target, object{"interval": "1h", "workers": 1}))
			configuration["experimental"].(object)["cache_file"] = object{"enabled": true}
			process := harness.Start(t, configuration)
			client := harness.NewClient(port)
			for _, start := range []string{"first start", "second start"} {
				awaitUp(process, 0, "fast")
				harness.Eventually(t, soon, start+": the fast member is in use", func() bool {
					source, err := client.Get(target.URL)
					return err == nil && source == fast.Address
				})
				expectShares(t, start, client.Shares(t, target.URL, 10), equally(10, fast.Address))
				if start == "first start" {
					process.Stop()
					process.Again()
				}
			}
		})
	}
}

// No `experimental` at all: a group's own settings do, and a group without any carries connections as well, though the
// default URL cannot be reached from here.
func TestField30_NoExperimental(t *testing.T) {
	t.Parallel()
	for name, own := range map[string]bool{"own settings": true, "no settings": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target := harness.StartTarget(t)
			one, two := harness.StartFaulty(t, 2), harness.StartFaulty(t, 3)
			balancer := object{"delay_acceptable_ratio": wide}
			if own {
				balancer["monitoring"] = harness.Monitoring(target, nil)
			}
			port := harness.FreePort(t)
			process := harness.StartReady(t, harness.Configuration(port, balancer, one.Outbound("one"), two.Outbound("two")))
			if own {
				awaitUp(process, 0, "one", "two")
			} else {
				awaitSilence(process, 0)
			}
			expectShares(t, name, harness.NewClient(port).Shares(t, target.URL, 20), equally(20, one.Address, two.Address))
		})
	}
}
