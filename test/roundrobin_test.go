package test

import (
	"testing"

	"tarazu/test/harness"
)

// S4.1 with real servers: exactly equal shares, nothing for a member that is down, and its exact share again once it is
// back.
func TestRoundRobin_EqualShares(t *testing.T) {
	t.Parallel()
	target := harness.StartTarget(t)
	socks := harness.StartServer(t, harness.SOCKS, 2)
	shadowsocks := harness.StartServer(t, harness.Shadowsocks, 3)
	vless := harness.StartServer(t, harness.VLESS, 4)
	sources := []string{socks.Address, shadowsocks.Address, vless.Address}
	port := harness.FreePort(t)
	process := harness.StartReady(t, harness.Monitored(
		harness.Configuration(port, object{"delay_acceptable_ratio": wide}, socks.Outbound(), shadowsocks.Outbound(), vless.Outbound()),
		harness.Monitoring(target, nil),
	))
	client := harness.NewClient(port)
	awaitUp(process, 0, socks.Tag, shadowsocks.Tag, vless.Tag)
	expectShares(t, "all up", client.Shares(t, target.URL, 300), equally(300, sources...))

	mark := process.Log.Mark()
	vless.Stop()
	awaitDown(process, mark, vless.Tag)
	expectShares(t, "one down", client.Shares(t, target.URL, 100), equally(100, socks.Address, shadowsocks.Address))

	vless.Start()
	awaitUp(process, mark, vless.Tag)
	// It takes part from the round's end on (S7.1): when each was tested twice again, another round has begun.
	target.AwaitRounds(t, 2, sources...)
	expectShares(t, "up again", client.Shares(t, target.URL, 300), equally(300, sources...))
}

// S5.3: the failed dial itself has the member tested; nobody waits for a round of an hour.
func TestRoundRobin_S5_3_Retest(t *testing.T) {
	t.Parallel()
	target := harness.StartTarget(t)
	good, bad := harness.StartFaulty(t, 2), harness.StartFaulty(t, 3)
	port := harness.FreePort(t)
	process := harness.StartReady(t, harness.Monitored(
		harness.Configuration(port, object{"delay_acceptable_ratio": wide}, good.Outbound("good"), bad.Outbound("bad")),
		harness.Monitoring(target, object{"interval": "1h"}),
	))
	client := harness.NewClient(port)
	awaitUp(process, 0, "good", "bad")

	bad.Become(harness.Refuse)
	failures := 0
	for range 4 {
		if _, err := client.Get(target.URL); err != nil {
			failures++
		}
	}
	if failures == 0 {
		t.Error("no connection went to the member that refuses")
	}
	awaitDown(process, 0, "bad")
	expectShares(t, "after the retest", client.Shares(t, target.URL, 20), equally(20, good.Address))
}

// S1.1: a strategy that is absent or empty is round-robin.
func TestField24_NoStrategy(t *testing.T) {
	t.Parallel()
	for name, balancer := range map[string]object{"absent": {}, "empty": {"strategy": ""}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target := harness.StartTarget(t)
			one, two := harness.StartFaulty(t, 2), harness.StartFaulty(t, 3)
			port := harness.FreePort(t)
			balancer["delay_acceptable_ratio"] = wide
			process := harness.StartReady(t, harness.Monitored(
				harness.Configuration(port, balancer, one.Outbound("one"), two.Outbound("two")),
				harness.Monitoring(target, nil),
			))
			awaitUp(process, 0, "one", "two")
			expectShares(t, name, harness.NewClient(port).Shares(t, target.URL, 20), equally(20, one.Address, two.Address))
		})
	}
}
