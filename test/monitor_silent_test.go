package test

import (
	"slices"
	"testing"

	"tarazu/test/harness"
)

// A member's server accepts, takes what the client sends and ends the connection: most protocols have said by then that
// the connection is open, so only that tells (S5.3a). Its next test does tell.
func TestMonitor_S5_3a_SilentFailure(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{harness.SOCKS, harness.Shadowsocks, harness.VLESS, harness.Trojan} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			target := harness.StartTarget(t)
			server := harness.StartServer(t, protocol, 2)
			gate, other := harness.StartGate(t, server.Port), harness.StartFaulty(t, 3)
			member := server.Outbound()
			member["server_port"] = gate.Port
			port := harness.FreePort(t)
			process := harness.StartReady(t, harness.Monitored(
				harness.Configuration(port, object{"strategy": "failover"}, member, other.Outbound("other")), seldom(target),
			))
			awaitUp(process, 0, server.Tag, "other")
			client := harness.NewClient(port)
			if protocol == harness.SOCKS {
				// A gate cannot speak for the server; a SOCKS server that fails like this is a member of its own below.
				gate.Become(harness.Reset)
			} else {
				gate.Become(harness.Sever)
			}
			if source, err := client.Get(target.URL); err == nil {
				t.Errorf("a connection through a severed line succeeded, from %s", source)
			}
			awaitDown(process, 0, server.Tag)
			expectShares(t, "afterwards", client.Shares(t, target.URL, 5), equally(5, other.Address))
		})
	}
	t.Run("socks, severed", func(t *testing.T) {
		t.Parallel()
		target := harness.StartTarget(t)
		_, members, tags, sources := startMembers(t, 2)
		bad := harness.StartFaulty(t, 9)
		port := harness.FreePort(t)
		process := harness.StartReady(t, harness.Monitored(
			harness.Configuration(port, object{"strategy": "failover"}, slices.Concat([]object{bad.Outbound("bad")}, members)...), seldom(target),
		))
		awaitUp(process, 0, append(tags, "bad")...)
		bad.Become(harness.Sever)
		client := harness.NewClient(port)
		if _, err := client.Get(target.URL); err == nil {
			t.Error("a severed connection succeeded")
		}
		awaitDown(process, 0, "bad")
		expectShares(t, "afterwards", client.Shares(t, target.URL, 5), equally(5, sources[0]))
	})
}

// A client that goes away by itself has nobody tested (S5.3a).
func TestMonitor_S5_3a_ClientThatLeaves(t *testing.T) {
	t.Parallel()
	target := harness.StartTarget(t)
	one, two := harness.StartFaulty(t, 2), harness.StartFaulty(t, 3)
	port := harness.FreePort(t)
	process := harness.StartReady(t, harness.Monitored(
		harness.Configuration(port, nil, one.Outbound("one"), two.Outbound("two")), seldom(target),
	))
	awaitUp(process, 0, "one", "two")
	one.Become(harness.Silent)
	two.Become(harness.Silent)
	client := harness.NewClient(port)
	destination := harness.StartEchoes(t).Address
	for i := range 20 {
		live := client.Open(t, destination)
		live.Send(t, "hello")
		live.Leave(i%2 == 0)
	}
	harness.Eventually(t, soon, "all are gone", func() bool { return one.Open()+two.Open() == 0 })
	// The members' own tests are the only other connections.
	if count := one.Connections() + two.Connections(); count != 20 {
		t.Errorf("%d connections, not 20", count)
	}
}
