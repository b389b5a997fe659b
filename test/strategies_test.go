package test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"tarazu/test/harness"
)

// Every strategy with real servers, TCP and UDP: one program has a balancer of each, behind an inbound of its own.
func TestStrategies_RealServers(t *testing.T) {
	t.Parallel()
	target, echo := harness.StartTarget(t), harness.StartEcho(t)
	var servers []*harness.Server
	var members []object
	var tags, sources []string
	for i, protocol := range []string{harness.Shadowsocks, harness.VLESS, harness.Trojan, harness.Hysteria2} {
		server := harness.StartServer(t, protocol, 2+i)
		servers = append(servers, server)
		members = append(members, server.Outbound())
		tags, sources = append(tags, server.Tag), append(sources, server.Address)
	}
	clients := make(map[string]*harness.Client)
	var inbounds, rules []object
	for _, strategy := range strategies {
		port := harness.FreePort(t)
		clients[strategy] = harness.NewClient(port)
		inbounds = append(inbounds, object{"type": "mixed", "tag": strategy, "listen": "127.0.0.1", "listen_port": port})
		rules = append(rules, object{"inbound": strategy, "outbound": strategy})
	}
	configuration := func(order []string) object {
		outbounds := slices.Clone(members)
		for _, strategy := range strategies {
			outbounds = append(outbounds, object{
				"type": "balancer", "tag": strategy, "strategy": strategy, "outbounds": order, "delay_acceptable_ratio": wide,
			})
		}
		return harness.Monitored(object{
			"log": object{"level": "debug"}, "inbounds": inbounds, "outbounds": outbounds, "route": object{"rules": rules},
		}, harness.Monitoring(target, nil))
	}
	process := harness.StartReady(t, configuration(tags))
	// expectAll waits until every balancer said a change of a member.
	expectAll := func(mark int, tag, change string) {
		for _, strategy := range strategies {
			process.Await(mark, "balancer["+strategy+"]", "member "+tag+" is now "+change)
		}
	}
	for _, tag := range tags {
		expectAll(0, tag, "up")
	}
	target.AwaitRounds(t, 1, sources...)
	// connect makes connections through a strategy, every other one an association, and returns their sources.
	connect := func(strategy string, count int) (tcp, udp map[string]int) {
		t.Helper()
		tcp, udp = make(map[string]int), make(map[string]int)
		for range count {
			source, err := clients[strategy].Get(target.URL)
			if err != nil {
				t.Errorf("%s, TCP: %v", strategy, err)
			}
			tcp[source]++
			if source, err = clients[strategy].Exchange(echo.Address); err != nil {
				t.Errorf("%s, UDP: %v", strategy, err)
			}
			udp[source]++
		}
		return tcp, udp
	}
	one := make(map[string]string) // by strategy, who had all connections of one key
	for _, strategy := range strategies {
		tcp, udp := connect(strategy, 12)
		switch strategy {
		case "round-robin":
			expectShares(t, strategy, tcp, equally(12, sources...))
			expectShares(t, strategy+", UDP", udp, equally(12, sources...))
		case "least-connections":
			for _, source := range sources { // a connection may end after the next one begins: near enough
				if tcp[source] == 0 || udp[source] == 0 {
					t.Errorf("%s: %s has no share: TCP %v, UDP %v", strategy, source, tcp, udp)
				}
			}
		default:
			one[strategy] = slices.Collect(maps.Keys(tcp))[0]
			expectShares(t, strategy, tcp, equally(12, one[strategy]))
			if strategy == "lowest-delay" { // between them it may have found a faster one
				break
			}
			expectShares(t, strategy+", UDP", udp, equally(12, one[strategy]))
		}
	}
	if one["failover"] != sources[0] {
		t.Errorf("failover uses %s, not the first", one["failover"])
	}

	// The first of the list dies, and comes back.
	mark := process.Log.Mark()
	servers[0].Stop()
	expectAll(mark, tags[0], "down")
	for _, strategy := range strategies {
		tcp, udp := connect(strategy, 6)
		if tcp[sources[0]]+udp[sources[0]] > 0 {
			t.Errorf("%s: the dead member has connections: TCP %v, UDP %v", strategy, tcp, udp)
		}
		if strategy == "failover" {
			expectShares(t, strategy+", the first is dead", tcp, equally(6, sources[1]))
		}
		if it := one[strategy]; it != sources[0] && slices.Contains([]string{"consistent-hashing", "sticky-sessions", "pool"}, strategy) {
			expectShares(t, strategy+", another is dead", tcp, equally(6, it))
		}
	}
	mark = process.Log.Mark()
	servers[0].Start()
	expectAll(mark, tags[0], "up")
	tcp, _ := connect("failover", 3)
	expectShares(t, "failover, the first is back", tcp, equally(3, sources[0]))

	// A key's member does not depend on the order of the list, nor on what was before.
	process.Stop()
	slices.Reverse(tags)
	process.Rewrite(configuration(tags))
	process.Again()
	for _, tag := range tags {
		expectAll(0, tag, "up")
	}
	tcp, udp := connect("consistent-hashing", 3)
	for network, shares := range []map[string]int{tcp, udp} {
		expectShares(t, fmt.Sprint("consistent-hashing after a restart, network ", network), shares, equally(3, one["consistent-hashing"]))
	}
}

// A member that refuses has few open connections, and does not draw those that follow (S4.7).
func TestLeastConnections_S4_7_RefusingMemberDrawsNothing(t *testing.T) {
	t.Parallel()
	target := harness.StartTarget(t)
	one, two, bad := harness.StartFaulty(t, 2), harness.StartFaulty(t, 3), harness.StartFaulty(t, 4)
	port := harness.FreePort(t)
	process := harness.StartReady(t, harness.Monitored(
		harness.Configuration(port, object{"strategy": "least-connections", "delay_acceptable_ratio": wide},
			one.Outbound("one"), two.Outbound("two"), bad.Outbound("bad")),
		harness.Monitoring(target, object{"interval": "1h"}),
	))
	awaitUp(process, 0, "one", "two", "bad")
	bad.Become(harness.Refuse)
	manyRequests(port, target, 500)
	awaitDown(process, 0, "bad")
	given := len(process.Log.Find(0, "connection through member bad"))
	// Those that were under way before the first failure, ten at a time, and no more than that.
	if given == 0 || given > 20 {
		t.Errorf("the refusing member was given %d connections of 500", given)
	}
	served := target.Requests()
	if total := served[one.Address] + served[two.Address]; total != 500-given {
		t.Errorf("the others served %d of %d", total, 500-given)
	}
}
