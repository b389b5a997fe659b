package test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"tarazu/test/harness"
)

// A group that is only another outbound's `detour`, a DNS server's or a download's way out: its members are tested, and
// what goes there wakes the rounds (S1.4).
func TestField15_OnlyAWayOut(t *testing.T) {
	t.Parallel()
	const stopped = "tests stop until the next connection"
	rules := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"version": 1, "rules": [{"domain": ["blocked.test"]}]}`)
	}))
	t.Cleanup(rules.Close)
	names := harness.StartNames(t)
	names.Set("target.test", "127.0.0.1")
	for _, story := range []struct {
		name string
		// apply has the group be only a way out; wake uses that.
		apply func(configuration object)
		wake  func(client *harness.Client, target *harness.Target)
	}{
		{"detour", func(configuration object) {
			outer := harness.StartFaulty(t, 4).Outbound("outer")
			outer["detour"] = harness.BalancerTag
			// A group around it has it tested, by way of the group that is only a way out.
			configuration["outbounds"] = append(configuration["outbounds"].([]object), outer,
				object{"type": "balancer", "tag": "last", "outbounds": []string{"outer"}})
			configuration["route"].(object)["final"] = "last"
		}, func(client *harness.Client, target *harness.Target) { _, _ = client.Get(target.URL) }},
		{"DNS server", func(configuration object) {
			server := names.Server("dns", "tcp")
			server["detour"] = harness.BalancerTag
			configuration["dns"] = object{"servers": []object{server}}
			configuration["outbounds"] = append(configuration["outbounds"].([]object), object{"type": "direct", "tag": "direct"})
			configuration["route"] = object{"final": "direct", "default_domain_resolver": "dns"}
		}, func(client *harness.Client, target *harness.Target) {
			_, _ = client.Get(fmt.Sprintf("http://target.test:%d/", target.Port))
		}},
		{"download", func(configuration object) {
			configuration["outbounds"] = append(configuration["outbounds"].([]object), object{"type": "direct", "tag": "direct"})
			configuration["route"] = object{"final": "direct", "rules": []object{{"rule_set": "rules", "action": "reject"}}, "rule_set": []object{{
				"type": "remote", "tag": "rules", "format": "source", "url": rules.URL, "download_detour": harness.BalancerTag, "update_interval": "3s",
			}}}
		}, func(*harness.Client, *harness.Target) {}},
	} {
		t.Run(story.name, func(t *testing.T) {
			t.Parallel()
			target := harness.StartTarget(t)
			_, members, tags, _ := startMembers(t, 2)
			port := harness.FreePort(t)
			configuration := harness.Monitored(
				harness.Configuration(port, nil, members...),
				harness.Monitoring(target, object{"interval": "200ms", "idle_timeout": "1s"}),
			)
			story.apply(configuration)
			process := harness.StartReady(t, configuration)
			awaitUp(process, 0, tags...)
			process.Await(0, stopped) // tests are no traffic
			before := target.Tests()
			story.wake(harness.NewClient(port), target)
			harness.Eventually(t, soon, "a round", func() bool {
				for source, tests := range before {
					if target.Tests()[source] == tests {
						return false
					}
				}
				return true
			})
		})
	}
}

// A connection that keeps moving bytes keeps the rounds going; one that only is there does not (S1.4).
func TestField15_LongConnection(t *testing.T) {
	t.Parallel()
	const stopped = "tests stop until the next connection"
	target := harness.StartTarget(t)
	_, members, tags, sources := startMembers(t, 2)
	port := harness.FreePort(t)
	process := harness.StartReady(t, harness.Monitored(
		harness.Configuration(port, nil, members...), harness.Monitoring(target, object{"interval": "200ms", "idle_timeout": "1s"}),
	))
	awaitUp(process, 0, tags...)
	process.Await(0, stopped)
	mark := process.Log.Mark()
	live := harness.NewClient(port).Open(t, harness.StartEchoes(t).Address) // wakes it
	before := target.Tests()[sources[0]]
	// The connection moves bytes until there were more rounds than fit into the idle time.
	harness.Eventually(t, soon, "rounds go on", func() bool {
		live.Expect(t, "more")
		return target.Tests()[sources[0]] >= before+12
	})
	if lines := process.Log.Find(mark, stopped); len(lines) > 0 {
		t.Errorf("a connection was in use: %v", lines)
	}
	process.Await(mark, stopped) // it is open still, but says nothing
}
