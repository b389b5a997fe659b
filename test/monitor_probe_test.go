package test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"tarazu/test/harness"
)

// `probe: tcp`: healthy is who accepts a connection. Nothing is sent, nothing but the server is asked, and what the
// protocol would say does not count (S7.5).
func TestMonitor_S7_5_TCPProbe(t *testing.T) {
	t.Parallel()
	target := harness.StartTarget(t)
	var gates []*harness.Faulty
	var members []object
	for i, protocol := range []string{harness.SOCKS, harness.Shadowsocks, harness.VLESS, harness.Trojan} {
		server := harness.StartServer(t, protocol, 2+i)
		gate, member := harness.StartGate(t, server.Port), server.Outbound()
		gate.Become(harness.Tarpit) // accepts, and that is all
		member["tag"], member["server_port"] = protocol, gate.Port
		gates, members = append(gates, gate), append(members, member)
	}
	process := harness.StartReady(t, harness.Monitored(
		harness.Configuration(harness.FreePort(t), object{"strategy": "failover"}, members...),
		object{"probe": "tcp", "interval": "300ms", "jitter": 0},
	))
	for _, member := range members {
		awaitUp(process, 0, member["tag"].(string))
	}
	for i, gate := range gates {
		mark := process.Log.Mark()
		gate.Become(harness.Refuse)
		awaitDown(process, mark, members[i]["tag"].(string))
		mark = process.Log.Mark()
		gate.Become(harness.Tarpit)
		awaitUp(process, mark, members[i]["tag"].(string))
		harness.Eventually(t, soon, "the connection is closed", func() bool { return gate.Open() == 0 })
	}
	if tests := target.Tests(); len(tests) > 0 {
		t.Errorf("a URL was asked for: %v", tests)
	}
}

// A group's own `probe: tcp` goes through the member's own dialer options: a detour through another group, a resolver of
// its own, a name with several addresses of which only the last accepts.
func TestMonitor_S7_5_TCPProbeDialsAsTheMemberDoes(t *testing.T) {
	t.Parallel()
	target, names := harness.StartTarget(t), harness.StartNames(t)
	hop, server := harness.StartFaulty(t, 2), harness.StartFaulty(t, 3)
	names.Set("several.test", "127.0.0.200", "127.0.0.201", "127.0.0.1")
	far, named := server.Outbound("far"), server.Outbound("named")
	far["detour"] = "inner"
	named["server"], named["domain_resolver"] = "several.test", "names"
	configuration := harness.Monitored(harness.Configuration(harness.FreePort(t),
		object{"strategy": "failover", "outbounds": []string{"far", "named"}, "monitoring": object{"probe": "tcp", "interval": "300ms", "jitter": 0}},
		far, named, hop.Outbound("hop"), object{"type": "balancer", "tag": "inner", "outbounds": []string{"hop"}},
	), seldom(target))
	configuration["dns"] = object{"servers": []object{names.Server("names", "udp")}}
	process := harness.StartReady(t, configuration)
	process.Await(0, "balancer[balancer]", "member far is now up")
	process.Await(0, "balancer[balancer]", "member named is now up")
	if names.Asked("several.test") == 0 {
		t.Error("the member's resolver was not asked")
	}
	mark := process.Log.Mark()
	hop.Become(harness.Refuse)
	process.Await(mark, "balancer[balancer]", "member far is now down")
	mark = process.Log.Mark()
	names.Set("several.test")
	process.Await(mark, "no member answers") // in rounds that both fail it is the network
	hop.Become(harness.Serve)
	process.Await(mark, "balancer[balancer]", "member far is now up")
	names.Set("several.test", "127.0.0.1")
	process.Await(mark, "balancer[balancer]", "member named is now up")
}

// An address that swallows everything leaves time for the next.
func TestMonitor_S7_5_TCPProbeTriesEveryAddress(t *testing.T) {
	t.Parallel()
	if !harness.InNamespace(t) {
		return
	}
	names, server := harness.StartNames(t), harness.StartFaulty(t, 3)
	names.Set("several.test", "192.0.2.77", "127.0.0.1")
	member := server.Outbound("named")
	member["server"], member["domain_resolver"] = "several.test", "names"
	configuration := harness.Monitored(
		harness.Configuration(harness.FreePort(t), object{"strategy": "failover"}, member, server.Outbound("other")),
		object{"probe": "tcp", "url_test_timeout": "2s"},
	)
	configuration["dns"] = object{"servers": []object{names.Server("names", "udp")}}
	process := harness.StartReady(t, configuration)
	awaitUp(process, 0, "named", "other")
}

// Members without a TCP endpoint are refused where a group is tested so, in a line that says it.
func TestMonitor_S7_5_TCPProbeRefusesWhatItCannotTest(t *testing.T) {
	t.Parallel()
	socks := object{"type": "socks", "tag": "socks", "server": "127.0.0.1", "server_port": 1080}
	for kind, member := range map[string]object{
		"direct":    {},
		"block":     {},
		"hysteria2": {"server": "127.0.0.1", "server_port": 443, "password": "x", "tls": object{"enabled": true, "server_name": "example.org"}},
		"tuic":      {"server": "127.0.0.1", "server_port": 443, "uuid": "2dd61d93-75d8-4da4-ac0e-6aece7eac365", "tls": object{"enabled": true, "server_name": "example.org"}},
		"selector":  {"outbounds": []string{"socks"}},
		"balancer":  {"outbounds": []string{"socks"}},
	} {
		for _, global := range []bool{false, true} {
			it := object{"type": kind, "tag": "member"}
			maps.Copy(it, member)
			balancer := object{"outbounds": []string{"socks", "member"}}
			configuration := harness.Configuration(0, balancer, socks, it)
			if global {
				configuration = harness.Monitored(configuration, object{"probe": "tcp"})
			} else {
				balancer["monitoring"] = object{"probe": "tcp"}
				configuration = harness.Configuration(0, balancer, socks, it)
			}
			directory := t.TempDir()
			if err := harness.WriteFile(directory+"/config.json", configuration); err != nil {
				t.Fatal(err)
			}
			result := harness.Run(t, directory, "", "check", "-c", "config.json")
			lines := result.ErrorLines()
			if result.Status == 0 || len(lines) != 1 {
				t.Errorf("%s, global: %v: status %d, %q", kind, global, result.Status, lines)
			}
			for _, word := range []string{"balancer[balancer]", "outbounds", `"member" (` + kind + ")", "no TCP endpoint", "probe: tcp"} {
				if !strings.Contains(lines[0], word) {
					t.Errorf("%s, global: %v: %q does not say %q", kind, global, lines[0], word)
				}
			}
		}
	}
}

// Two outbounds with one server and port but different credentials have states of their own.
func TestField53_SameServerOtherCredentials(t *testing.T) {
	t.Parallel()
	target := harness.StartTarget(t)
	for _, protocol := range []string{harness.Shadowsocks, harness.Trojan} {
		server := harness.StartServer(t, protocol, 2)
		right, wrong := server.Outbound(), server.Outbound()
		right["tag"], wrong["tag"] = "right", "wrong"
		wrong["password"] = "AAAAAAAAAAAAAAAAAAAAAA=="
		port := harness.FreePort(t)
		process := harness.StartReady(t, harness.Monitored(
			harness.Configuration(port, nil, wrong, right), harness.Monitoring(target, object{"url_test_timeout": "1s"}),
		))
		awaitUp(process, 0, "right")
		awaitDown(process, 0, "wrong")
		expectShares(t, protocol, harness.NewClient(port).Shares(t, target.URL, 5), equally(5, server.Address))
	}
}

// Tags of all kinds are kept apart in tests, in the Clash API and in the cache.
func TestField55_Tags(t *testing.T) {
	t.Parallel()
	target := harness.StartTarget(t)
	tags := []string{"default", "GLOBAL", "with space", "a/b", "🇩🇪 Frankfurt §1", "%2F", "."}
	var members []object
	var sources []string
	for i, tag := range tags {
		server := harness.StartFaulty(t, 2+i)
		target.DelayTests(server.Address, time.Duration(i)*40*time.Millisecond)
		members, sources = append(members, server.Outbound(tag)), append(sources, server.Address)
	}
	port, clash := harness.FreePort(t), harness.NewClash(t)
	process := harness.StartReady(t, cached(clash.Enable(harness.Monitored(
		harness.Configuration(port, object{"strategy": "lowest-delay"}, members...), harness.Monitoring(target, object{"interval": "1h"}),
	)), "cache.db"))
	awaitUp(process, 0, tags...)
	delays := clash.TestGroup(t, harness.BalancerTag)
	if found := slices.Sorted(maps.Keys(delays)); !slices.Equal(found, slices.Sorted(slices.Values(tags))) {
		t.Errorf("the group's test knows %q", found)
	}
	for i, tag := range tags {
		if delay := delays[tag]; delay < i*40 || delay >= i*40+40 {
			t.Errorf("%q: %d ms, not from %d on", tag, delay, i*40)
		}
	}
	// The fastest is the last of the list in the cache alone.
	target.DelayTests(sources[0], 500*time.Millisecond)
	target.DelayTests(sources[1], 500*time.Millisecond)
	clash.TestGroup(t, harness.BalancerTag)
	process.Stop()
	for _, source := range sources {
		target.DelayTests(source, time.Minute)
	}
	process.Again()
	process.AwaitReady()
	expectShares(t, "from the cache", harness.NewClient(port).Shares(t, target.URL, 3), equally(3, sources[2]))
}

// One lookup of a member's name that fails does not kill it where two have to; one that hangs ends within the timeout and
// delays nobody else.
func TestField56_LookupsOfMembersNames(t *testing.T) {
	t.Parallel()
	target, names := harness.StartTarget(t), harness.StartNames(t)
	servers, members, tags, sources := startMembers(t, 3)
	for i := range members[:2] {
		name := fmt.Sprintf("member-%d.test", i)
		names.Set(name, "127.0.0.1")
		members[i]["server"], members[i]["domain_resolver"] = name, "names"
	}
	configuration := harness.Monitored(
		harness.Configuration(harness.FreePort(t), nil, members...),
		harness.Monitoring(target, object{"interval": "400ms", "url_test_timeout": "2s", "fall": 2, "workers": 2}),
	)
	configuration["dns"] = object{"servers": []object{names.Server("names", "udp")}}
	process := harness.StartReady(t, configuration)
	awaitUp(process, 0, tags...)

	mark := process.Log.Mark()
	names.Set("member-0.test") // fails
	process.Await(mark, "test of member-0 failed")
	names.Set("member-0.test", "127.0.0.1")
	target.AwaitRounds(t, 1, sources...)
	if lines := process.Log.Find(mark, "is now down"); len(lines) > 0 {
		t.Errorf("one failure killed a member: %v", lines)
	}

	mark = process.Log.Mark()
	names.Hang("member-1.test")
	asked := names.Asked("member-1.test")
	harness.Eventually(t, soon, "a lookup hangs", func() bool { return names.Asked("member-1.test") > asked })
	process.Await(mark, "test of member-1 failed: no answer within 2s")
	awaitDown(process, mark, "member-1")
	target.AwaitRounds(t, 2, sources[0], sources[2])
	if servers[0].Open() > 1 {
		t.Error("tests pile up")
	}
	names.Set("member-1.test", "127.0.0.1")
	awaitUp(process, mark, "member-1")
}
