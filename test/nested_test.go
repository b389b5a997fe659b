package test

import (
	"fmt"
	"maps"
	"net/url"
	"testing"
	"time"

	"tarazu/test/harness"
)

// A balancer of balancers in a selector: keys hold through all levels and over a restart, and the inner groups do not
// choose in step with the outer one, which would leave half of the members without any.
func TestNested_KeysHoldAndDoNotRunInStep(t *testing.T) {
	t.Parallel()
	target := harness.StartTarget(t)
	_, members, tags, _ := startMembers(t, 4)
	var users []object
	for i := range 40 {
		users = append(users, object{"username": fmt.Sprint("user", i), "password": "secret"})
	}
	pool := func(tag string, members ...string) object {
		return object{"type": "balancer", "tag": tag, "strategy": "pool", "sticky_hash": []string{"user"}, "delay_acceptable_ratio": wide, "outbounds": members}
	}
	port := harness.FreePort(t)
	process := harness.StartReady(t, harness.Monitored(object{
		"log":      object{"level": "debug"},
		"inbounds": []object{{"type": "mixed", "listen": "127.0.0.1", "listen_port": port, "users": users}},
		"outbounds": append(members,
			pool("left", tags[0], tags[1]), pool("right", tags[2], tags[3]), pool("outer", "left", "right"),
			object{"type": "selector", "tag": "chosen", "outbounds": []string{"outer", tags[0]}}),
		"route": object{"final": "chosen"},
	}, harness.Monitoring(target, nil)))
	table := func() map[string]string {
		awaitUp(process, 0, tags...)
		sources := make(map[string]string)
		for _, user := range users {
			name := user["username"].(string)
			client := harness.NewClient(port)
			client.User = url.UserPassword(name, "secret")
			source, err := client.Get(target.URL)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			sources[name] = source
		}
		return sources
	}
	first := table()
	counts := make(map[string]int)
	for _, source := range first {
		counts[source]++
	}
	if len(counts) != len(tags) {
		t.Errorf("40 keys over two levels of two use %v", counts)
	}
	if again := table(); !maps.Equal(again, first) {
		t.Errorf("keys move:\n%v\n%v", first, again)
	}
	process.Stop()
	process.Again()
	process.AwaitReady()
	if again := table(); !maps.Equal(again, first) {
		t.Errorf("keys move over a restart:\n%v\n%v", first, again)
	}
}

// A change of a selector inside is seen outside at once, whatever tests say when (S5.4).
func TestMonitor_NestedSelectionReachesTheOuterGroup(t *testing.T) {
	t.Parallel()
	target := harness.StartTarget(t)
	slow, fast, middle := harness.StartFaulty(t, 2), harness.StartFaulty(t, 3), harness.StartFaulty(t, 4)
	target.DelayTests(slow.Address, 600*time.Millisecond)
	target.DelayTests(middle.Address, 250*time.Millisecond)
	port, clash := harness.FreePort(t), harness.NewClash(t)
	configuration := clash.Enable(harness.Monitored(
		harness.Configuration(port, object{"strategy": "lowest-delay", "cooldown": "0s", "outbounds": []string{"chosen", "middle"}},
			slow.Outbound("slow"), fast.Outbound("fast"), middle.Outbound("middle"),
			object{"type": "balancer", "tag": "inner", "strategy": "failover", "outbounds": []string{"fast"}},
			object{"type": "selector", "tag": "chosen", "outbounds": []string{"slow", "inner"}}),
		harness.Monitoring(target, object{"interval": "1h"}),
	))
	process := harness.StartReady(t, configuration)
	process.Await(0, "balancer[balancer]", "member middle", "takes over from chosen")
	process.Await(0, "balancer[balancer]", "member chosen is now up")
	client := harness.NewClient(port)
	expectShares(t, "at first", client.Shares(t, target.URL, 3), equally(3, middle.Address))
	mark := process.Log.Mark()
	clash.Select(t, "chosen", "inner")
	process.Await(mark, "balancer[balancer]", "member chosen", "takes over from middle")
	expectShares(t, "selected", client.Shares(t, target.URL, 3), equally(3, fast.Address))
	mark = process.Log.Mark()
	clash.Select(t, "chosen", "slow")
	process.Await(mark, "balancer[balancer]", "member middle", "takes over from chosen")
	expectShares(t, "selected back", client.Shares(t, target.URL, 3), equally(3, middle.Address))
}

// A urltest group inside that changes its mind, by a test of its own, is seen outside.
func TestMonitor_NestedURLTestReachesTheOuterGroup(t *testing.T) {
	t.Parallel()
	target, theirs := harness.StartTarget(t), harness.StartTarget(t)
	one, two, middle := harness.StartFaulty(t, 2), harness.StartFaulty(t, 3), harness.StartFaulty(t, 4)
	target.DelayTests(one.Address, 500*time.Millisecond)
	target.DelayTests(middle.Address, 250*time.Millisecond)
	theirs.DelayTests(two.Address, 800*time.Millisecond)
	theirs.DelayTests(one.Address, 600*time.Millisecond)
	port, clash := harness.FreePort(t), harness.NewClash(t)
	process := harness.StartReady(t, clash.Enable(harness.Monitored(
		harness.Configuration(port, object{"strategy": "lowest-delay", "cooldown": "0s", "outbounds": []string{"theirs", "middle"}},
			one.Outbound("one"), two.Outbound("two"), middle.Outbound("middle"),
			object{"type": "urltest", "tag": "theirs", "outbounds": []string{"one", "two"}, "url": theirs.TestURL}),
		harness.Monitoring(target, object{"interval": "1h"}),
	)))
	process.Await(0, "member middle", "takes over from theirs")
	process.Await(0, "urltest[theirs]", "outbound two available") // the last of its first tests
	process.Await(0, "member theirs is now up")
	mark := process.Log.Mark()
	theirs.DelayTests(two.Address, 0)
	clash.TestGroup(t, "theirs")
	process.Await(mark, "member theirs", "takes over from middle")
	expectShares(t, "through both groups", harness.NewClient(port).Shares(t, target.URL, 3), equally(3, two.Address))
}

// A balancer inside that changes its mind when its time has come, and nothing else happens, is seen outside at once.
func TestMonitor_NestedCooldownReachesTheOuterGroup(t *testing.T) {
	t.Parallel()
	target := harness.StartTarget(t)
	dead, slow, fast, middle := harness.StartFaulty(t, 2), harness.StartFaulty(t, 3), harness.StartFaulty(t, 4), harness.StartFaulty(t, 5)
	dead.Become(harness.Refuse)
	target.DelayTests(slow.Address, 600*time.Millisecond)
	target.DelayTests(fast.Address, 900*time.Millisecond)
	target.DelayTests(middle.Address, 250*time.Millisecond)
	port, clash := harness.FreePort(t), harness.NewClash(t)
	process := harness.StartReady(t, clash.Enable(harness.Monitored(
		harness.Configuration(port, object{"strategy": "lowest-delay", "cooldown": "0s", "outbounds": []string{"inner", "middle"}},
			dead.Outbound("dead"), slow.Outbound("slow"), fast.Outbound("fast"), middle.Outbound("middle"),
			object{"type": "balancer", "tag": "inner", "strategy": "lowest-delay", "cooldown": "2s", "outbounds": []string{"dead", "slow", "fast"}}),
		harness.Monitoring(target, object{"interval": "1h"}),
	)))
	process.Await(0, "balancer[inner]", "member slow", "takes over from dead")
	process.Await(0, "balancer[inner]", "member fast is now up")
	mark := process.Log.Mark()
	target.DelayTests(fast.Address, 0)
	clash.TestGroup(t, "inner")
	process.Await(mark, "balancer[inner]", "member fast", "takes over from slow")
	process.Await(mark, "balancer[balancer]", "member inner", "takes over from middle")
	expectShares(t, "through both groups", harness.NewClient(port).Shares(t, target.URL, 3), equally(3, fast.Address))
}

// The member that an inner balancer leads to dies: the inner one leaves it, and the outer one neither leaves the inner one
// nor closes what goes through it to members that live. When all inner members are dead, it does.
func TestMonitor_NestedBalancerDealsWithItsOwnDead(t *testing.T) {
	t.Parallel()
	for _, strategy := range []string{"round-robin", "lowest-delay", "failover"} {
		t.Run(strategy, func(t *testing.T) {
			t.Parallel()
			target, echoes := harness.StartTarget(t), harness.StartEchoes(t)
			servers, members, tags, sources := startMembers(t, 3)
			target.DelayTests(sources[1], 100*time.Millisecond) // the first is shown
			port := harness.FreePort(t)
			process := harness.StartReady(t, harness.Monitored(
				harness.Configuration(port,
					object{"strategy": "failover", "interrupt_exist_connections": true, "outbounds": []string{"inner", tags[2]}},
					append(members, object{"type": "balancer", "tag": "inner", "strategy": strategy, "outbounds": tags[:2], "delay_acceptable_ratio": wide})...),
				harness.Monitoring(target, object{"interval": "200ms", "url_test_timeout": "1s"}),
			))
			awaitUp(process, 0, "inner", tags[0], tags[1], tags[2])
			client := harness.NewClient(port)
			for range 3 {
				mark := process.Log.Mark()
				servers[0].Become(harness.Refuse)
				process.Await(mark, "balancer[inner]", "member "+tags[0]+" is now down")
				live := client.Open(t, echoes.Address)
				if source := live.Source(t); source != sources[1] {
					t.Errorf("a connection went to %s", source)
				}
				servers[0].Become(harness.Serve)
				process.Await(mark, "balancer[inner]", "member "+tags[0]+" is now up")
				live.Expect(t, "still here")
				for _, words := range []string{"member inner is now", "takes over from inner", "connections of member inner"} {
					if lines := process.Log.Find(mark, "balancer[balancer]", words); len(lines) > 0 {
						t.Errorf("the outer group: %v", lines)
					}
				}
			}
			mark := process.Log.Mark()
			live := client.Open(t, echoes.Address)
			live.Source(t)
			servers[0].Become(harness.Refuse)
			servers[1].Become(harness.Refuse)
			process.Await(mark, "balancer[balancer]", "takes over from inner")
			if !live.EndsWithin(soon) {
				t.Error("a connection through an inner group with nobody alive goes on")
			}
			expectShares(t, "afterwards", client.Shares(t, target.URL, 3), equally(3, sources[2]))
		})
	}
}
