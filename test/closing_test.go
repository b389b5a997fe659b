package test

import (
	"fmt"
	"testing"
	"time"

	"tarazu/test/harness"
)

// closing is a program whose balancer stands somewhere in the way of connections to two servers that carry TCP and UDP.
type closing struct {
	target   *harness.Target
	process  *harness.Process
	client   *harness.Client
	streams  []*harness.Stream
	packets  []*harness.Association
	echoes   *harness.Echoes
	echo     *harness.Echo
	one, two *harness.Server
}

// startClosing has a configuration put the balancer in its place, and opens connections until each server has some.
func startClosing(t *testing.T, interrupt bool, place func(configuration object)) *closing {
	t.Helper()
	c := &closing{target: harness.StartTarget(t), echoes: harness.StartEchoes(t), echo: harness.StartEcho(t)}
	c.one, c.two = harness.StartServer(t, harness.SOCKS, 2), harness.StartServer(t, harness.SOCKS, 3)
	port := harness.FreePort(t)
	configuration := harness.Monitored(
		harness.Configuration(port, object{"delay_acceptable_ratio": wide, "interrupt_exist_connections": interrupt}, c.one.Outbound(), c.two.Outbound()),
		harness.Monitoring(c.target, object{"interval": "300ms", "url_test_timeout": "200ms"}),
	)
	place(configuration)
	c.process = harness.StartReady(t, configuration)
	c.process.Await(0, "balancer[balancer]", "member "+c.one.Tag+" is now up")
	c.process.Await(0, "balancer[balancer]", "member "+c.two.Tag+" is now up")
	c.target.AwaitRounds(t, 1, c.one.Address, c.two.Address)
	c.client = harness.NewClient(port)
	for range 20 {
		c.streams = append(c.streams, c.client.Open(t, c.echoes.Address))
	}
	for range 10 {
		c.packets = append(c.packets, c.client.Associate(t, c.echo.Address))
	}
	return c
}

// Each place in which a group can stand: a member whose test fails loses its connections, 10 TCP and 5 UDP, which end at
// both sides within a second, and the others live; without `interrupt_exist_connections` all live (S6.1a, S6.2, S6.3).
func TestField19_OnlyTheDeadMembersConnections(t *testing.T) {
	t.Parallel()
	outbounds := func(configuration object, more ...object) {
		configuration["outbounds"] = append(configuration["outbounds"].([]object), more...)
	}
	for _, story := range []struct {
		name  string
		place func(configuration object)
	}{
		{"final", func(object) {}},
		{"rule", func(configuration object) {
			outbounds(configuration, object{"type": "direct", "tag": "direct"})
			configuration["route"] = object{"final": "direct", "rules": []object{{"inbound": "mixed", "outbound": harness.BalancerTag}}}
		}},
		{"selector", func(configuration object) {
			outbounds(configuration, object{"type": "selector", "tag": "outer", "outbounds": []string{harness.BalancerTag}})
			configuration["route"].(object)["final"] = "outer"
		}},
		{"balancer", func(configuration object) {
			outbounds(configuration, object{"type": "balancer", "tag": "outer", "outbounds": []string{harness.BalancerTag}})
			configuration["route"].(object)["final"] = "outer"
		}},
		{"detour", func(configuration object) {
			far := harness.StartServer(t, harness.SOCKS, 4).Outbound()
			far["tag"], far["detour"] = "far", harness.BalancerTag
			outbounds(configuration, far)
			configuration["route"].(object)["final"] = "far"
		}},
	} {
		for _, interrupt := range []bool{true, false} {
			t.Run(fmt.Sprint(story.name, ", interrupt: ", interrupt), func(t *testing.T) {
				t.Parallel()
				c := startClosing(t, interrupt, story.place)
				// By which server each goes is seen where it is closed: behind a detour the target sees the far one.
				mark := c.process.Log.Mark()
				for _, stream := range c.streams {
					stream.Expect(t, "hello")
				}
				for _, association := range c.packets {
					if _, err := association.Ask(); err != nil {
						t.Fatal(err)
					}
				}
				c.target.DelayTests(c.one.Address, time.Minute)
				awaitDown(c.process, mark, c.one.Tag)
				count := 15
				if story.name == "detour" {
					count += 5 // the far server has a TCP connection for each association, which goes through the group too
				}
				if interrupt {
					c.process.Await(mark, "balancer[balancer]", fmt.Sprintf("closed %d connections of member %s: S6.1a", count, c.one.Tag))
				}
				ended, far := 0, 0
				for _, stream := range c.streams {
					if stream.EndsWithin(200 * time.Millisecond) {
						ended++
					}
				}
				for _, association := range c.packets {
					if association.EndsWithin(50 * time.Millisecond) {
						far++
					}
				}
				expected := [2]int{}
				if interrupt {
					expected = [2]int{10, 5}
				}
				if story.name == "detour" && interrupt && far > 5 {
					far = 5 // of which either may go, so more can end
				}
				if [2]int{ended, far} != expected {
					t.Errorf("%d streams and %d associations ended, not %v", ended, far, expected)
				}
				if story.name != "detour" {
					harness.Eventually(t, time.Second, "the far side sees it", func() bool { return c.echoes.Open(c.one.Address) == 10-expected[0] })
				}
				if closed := c.process.Log.Find(mark, "closed", "connections of member"); interrupt != (len(closed) == 1) {
					t.Errorf("closings: %v", closed)
				}
			})
		}
	}
}
