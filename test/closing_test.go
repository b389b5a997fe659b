package test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"syscall"
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

// Speed closes nothing: a download through the group that takes its time, and DNS over TLS through it, go on when a faster
// member takes over.
func TestField20_ChangesForSpeedCloseNothing(t *testing.T) {
	t.Parallel()
	target, names := harness.StartTarget(t), harness.StartNames(t)
	one, two := harness.StartFaulty(t, 2), harness.StartFaulty(t, 3)
	target.DelayTests(two.Address, 400*time.Millisecond)
	asked, answer := make(chan struct{}), make(chan struct{})
	var downloads atomic.Int32
	rules := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if downloads.Add(1) != 2 {
			fmt.Fprint(w, `{"version": 1, "rules": [{"domain": ["blocked.test"]}]}`)
			return
		}
		fmt.Fprint(w, `{"version": 1, "rules": [`)
		w.(http.Flusher).Flush()
		close(asked)
		<-answer
		fmt.Fprint(w, `{"domain": ["blocked.test", "late.test"]}]}`)
	}))
	t.Cleanup(rules.Close)
	port, clash := harness.FreePort(t), harness.NewClash(t)
	configuration := clash.Enable(harness.Monitored(
		harness.Configuration(port, object{"strategy": "lowest-delay", "cooldown": "0s", "interrupt_exist_connections": true},
			one.Outbound("one"), two.Outbound("two")),
		harness.Monitoring(target, object{"interval": "1h"}),
	))
	server := names.Server("dns", "tls")
	server["detour"] = harness.BalancerTag
	configuration["dns"] = object{"servers": []object{server}}
	route := configuration["route"].(object)
	route["default_domain_resolver"] = "dns"
	route["rule_set"] = []object{{
		"type": "remote", "tag": "rules", "format": "source", "url": rules.URL, "download_detour": harness.BalancerTag, "update_interval": "1s",
	}}
	route["rules"] = []object{{"rule_set": "rules", "action": "reject"}, {"action": "resolve"}}
	process := harness.StartReady(t, configuration)
	awaitUp(process, 0, "one", "two")
	client := harness.NewClient(port)
	reach := func(name string) error {
		names.Set(name, "127.0.0.1")
		_, err := client.Get(fmt.Sprintf("http://%s:%d/", name, target.Port))
		return err
	}
	if err := reach("first.test"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-asked:
	case <-time.After(soon):
		t.Fatal("the rule-set is not downloaded again")
	}
	selected, other := one, two
	for i := range 4 {
		mark := process.Log.Mark()
		target.DelayTests(selected.Address, 400*time.Millisecond)
		target.DelayTests(other.Address, 0)
		clash.TestGroup(t, harness.BalancerTag)
		process.Await(mark, "takes over from")
		if err := reach(fmt.Sprintf("after-%d.test", i)); err != nil {
			t.Errorf("after change %d: %v", i, err)
		}
		selected, other = other, selected
	}
	close(answer)
	harness.Eventually(t, soon, "the rules that were being downloaded apply", func() bool { return reach("late.test") != nil })
	if lines := process.Log.Find(0, "closed", "connections of member"); len(lines) > 0 {
		t.Errorf("speed closed something: %v", lines)
	}
}

// A UDP client with a source port of its own, after its member's death: packets flow again within 5 s (S6.3).
func TestField21_UDPAfterAMembersDeath(t *testing.T) {
	t.Parallel()
	t.Run("killed", func(t *testing.T) {
		t.Parallel()
		udpAfterDeath(t, (*harness.Server).Stop)
	})
	t.Run("frozen", func(t *testing.T) {
		t.Parallel()
		// It takes packets, and nothing tells that they are lost.
		process, one := udpAfterDeath(t, func(server *harness.Server) { server.Process.Signal(syscall.SIGSTOP) })
		process.Await(0, "closed 1 connections of member "+one.Tag+": S6.1a")
	})
}

func udpAfterDeath(t *testing.T, die func(server *harness.Server)) (*harness.Process, *harness.Server) {
	target, echo := harness.StartTarget(t), harness.StartEcho(t)
	one, two := harness.StartServer(t, harness.SOCKS, 2), harness.StartServer(t, harness.SOCKS, 3)
	_, echoPort, _ := net.SplitHostPort(echo.Address)
	number, _ := strconv.Atoi(echoPort)
	port := harness.FreePort(t)
	configuration := harness.Monitored(
		harness.Configuration(0, object{"strategy": "failover", "interrupt_exist_connections": true}, one.Outbound(), two.Outbound()),
		harness.Monitoring(target, object{"interval": "300ms", "url_test_timeout": "1s"}),
	)
	configuration["inbounds"] = []object{{
		"type": "direct", "listen": "127.0.0.1", "listen_port": port, "network": "udp", "override_address": "127.0.0.1", "override_port": number,
	}}
	process := harness.StartReady(t, configuration)
	awaitUp(process, 0, one.Tag, two.Tag)
	conn, err := net.Dial("udp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ask := func() string {
		_, _ = conn.Write([]byte("who am I?"))
		_ = conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		answer := make([]byte, 64)
		count, _ := conn.Read(answer)
		return string(answer[:count])
	}
	harness.Eventually(t, soon, "packets flow", func() bool { return ask() == one.Address })
	die(one)
	harness.Eventually(t, 5*time.Second, "packets flow again", func() bool { return ask() == two.Address })
	return process, one
}
