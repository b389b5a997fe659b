package test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"tarazu/test/harness"

	"github.com/sagernet/sing-box/daemon"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// seldom are test settings with which rounds find nothing out after the first.
func seldom(target *harness.Target) object {
	return harness.Monitoring(target, object{"interval": "1h", "url_test_timeout": "1s"})
}

// A dashboard's test with a URL that is blocked kills nobody whose own test is fine: it makes one such test, and its
// result is shown (S2.3). A group's test is the group's own.
func TestField28_DashboardTest(t *testing.T) {
	t.Parallel()
	target := harness.StartTarget(t)
	one, two := harness.StartFaulty(t, 2), harness.StartFaulty(t, 3)
	port, clash := harness.FreePort(t), harness.NewClash(t)
	process := harness.StartReady(t, clash.Enable(harness.Monitored(
		harness.Configuration(port, nil, one.Outbound("one"), two.Outbound("two")), seldom(target),
	)))
	awaitUp(process, 0, "one", "two")
	mark := process.Log.Mark()
	if err := clash.TestProxy("one", "https://blocked.invalid/"); err == nil {
		t.Error("a test of a name that does not exist succeeded")
	}
	harness.Eventually(t, soon, "our own test, and only of that member", func() bool {
		tests := target.Tests()
		return tests[one.Address] == 2 && tests[two.Address] == 1
	})
	harness.Eventually(t, soon, "its delay is shown", func() bool { return clash.Proxy(t, "one").Delay() > 0 })

	if delays := clash.TestGroup(t, harness.BalancerTag); delays["one"] == 0 || delays["two"] == 0 || len(delays) != 2 {
		t.Errorf("the group's test found %v", delays)
	}
	if tests := target.Tests(); tests[one.Address] != 3 || tests[two.Address] != 2 {
		t.Errorf("the group's test was not the group's own: %v", tests)
	}
	if lines := process.Log.Find(mark, "is now down"); len(lines) > 0 {
		t.Errorf("somebody was killed: %v", lines)
	}
	// A test by hand finds out at once what no round would for an hour.
	two.Become(harness.Refuse)
	clash.TestGroup(t, harness.BalancerTag)
	awaitDown(process, mark, "two")
	if delay := clash.Proxy(t, "two").Delay(); delay != 0 {
		t.Errorf("a dead member is shown with %d ms", delay)
	}
}

// What a urltest group finds out on its own is taken in, a failure after a test of our own (S2.2, S2.3).
func TestMonitor_S2_2_URLTestGroupBesideIt(t *testing.T) {
	t.Parallel()
	target, other := harness.StartTarget(t), harness.StartTarget(t)
	one, two := harness.StartFaulty(t, 2), harness.StartFaulty(t, 3)
	port, clash := harness.FreePort(t), harness.NewClash(t)
	configuration := clash.Enable(harness.Monitored(
		harness.Configuration(port, object{"strategy": "lowest-delay", "cooldown": "0s"}, one.Outbound("one"), two.Outbound("two")), seldom(target),
	))
	configuration["outbounds"] = append(configuration["outbounds"].([]object),
		object{"type": "urltest", "tag": "theirs", "outbounds": []string{"one", "two"}, "url": other.TestURL})
	target.DelayTests(two.Address, 200*time.Millisecond)
	process := harness.StartReady(t, configuration)
	awaitUp(process, 0, "one", "two")
	mark := process.Log.Mark()
	other.DelayTests(one.Address, 500*time.Millisecond)
	clash.TestGroup(t, "theirs")
	process.Await(mark, "member two", "takes over from one")
	if tests := target.Tests(); tests[one.Address] != 1 || tests[two.Address] != 1 {
		t.Errorf("a foreign success was tested again: %v", tests)
	}
}

// Two groups share members and test by different URLs: each goes by its own.
func TestField10_EachGroupByItsOwnURL(t *testing.T) {
	t.Parallel()
	left, right := harness.StartTarget(t), harness.StartTarget(t)
	one, two := harness.StartFaulty(t, 2), harness.StartFaulty(t, 3)
	left.DelayTests(one.Address, 200*time.Millisecond)
	right.DelayTests(two.Address, 200*time.Millisecond)
	var inbounds, rules []object
	clients := make(map[string]*harness.Client)
	outbounds := []object{one.Outbound("one"), two.Outbound("two")}
	for tag, target := range map[string]*harness.Target{"left": left, "right": right} {
		port := harness.FreePort(t)
		clients[tag] = harness.NewClient(port)
		inbounds = append(inbounds, object{"type": "mixed", "tag": tag, "listen": "127.0.0.1", "listen_port": port})
		rules = append(rules, object{"inbound": tag, "outbound": tag})
		outbounds = append(outbounds, object{
			"type": "balancer", "tag": tag, "strategy": "lowest-delay", "outbounds": []string{"one", "two"}, "monitoring": seldom(target),
		})
	}
	process := harness.StartReady(t, object{
		"log": object{"level": "debug"}, "inbounds": inbounds, "outbounds": outbounds, "route": object{"rules": rules},
	})
	for _, tag := range []string{"left", "right"} {
		for _, member := range []string{"one", "two"} {
			process.Await(0, "balancer["+tag+"]", "member "+member+" is now up")
		}
	}
	process.Await(0, "balancer[left]", "takes over from one")
	expectShares(t, "left", clients["left"].Shares(t, left.URL, 5), equally(5, two.Address))
	expectShares(t, "right", clients["right"].Shares(t, left.URL, 5), equally(5, one.Address))
}

// A member dies between rounds: the next connections work within the test's timeout, and 50 failures cause one test.
func TestField7_OneTestForManyFailures(t *testing.T) {
	t.Parallel()
	target := harness.StartTarget(t)
	one, two := harness.StartFaulty(t, 2), harness.StartFaulty(t, 3)
	port := harness.FreePort(t)
	process := harness.StartReady(t, harness.Monitored(
		harness.Configuration(port, object{"strategy": "failover"}, one.Outbound("one"), two.Outbound("two")), seldom(target),
	))
	awaitUp(process, 0, "one", "two")
	client := harness.NewClient(port)
	one.Become(harness.Reset)
	var connections sync.WaitGroup
	var access sync.Mutex
	failures := 0
	for range 50 {
		connections.Go(func() {
			if _, err := client.Get(target.URL); err != nil {
				access.Lock()
				defer access.Unlock()
				failures++
			}
		})
	}
	connections.Wait()
	awaitDown(process, 0, "one")
	if failures == 0 || one.Connections() != failures+1 {
		t.Errorf("%d failures, %d connections to the dead member: not one test", failures, one.Connections())
	}
	expectShares(t, "afterwards", client.Shares(t, target.URL, 10), equally(10, two.Address))
}

// Destinations refuse, 2,000 times: no selection moves, nobody is down, no live connection ends, and the tests are few.
func TestField8_DestinationsThatRefuse(t *testing.T) {
	t.Parallel()
	target := harness.StartTarget(t)
	one, two := harness.StartFaulty(t, 2), harness.StartFaulty(t, 3)
	target.DelayTests(two.Address, 100*time.Millisecond)
	port := harness.FreePort(t)
	process := harness.StartReady(t, harness.Monitored(
		harness.Configuration(port, object{"strategy": "lowest-delay", "interrupt_exist_connections": true}, one.Outbound("one"), two.Outbound("two")),
		seldom(target),
	))
	awaitUp(process, 0, "one", "two")
	mark := process.Log.Mark()
	client := harness.NewClient(port)
	live := client.Open(t, harness.StartEchoes(t).Address)
	refused := fmt.Sprintf("http://127.0.0.1:%d/", harness.FreePort(t))
	began := time.Now()
	var connections sync.WaitGroup
	slots := make(chan struct{}, 20)
	for range 2000 {
		slots <- struct{}{}
		connections.Go(func() {
			defer func() { <-slots }()
			if _, err := client.Get(refused); err == nil {
				t.Error("a connection to a port where nobody listens succeeded")
			}
		})
	}
	connections.Wait()
	// Pauses of 1, 2, 4, … s between the tests that they cause.
	allowed := 2
	for pause := time.Second; pause < time.Since(began); pause *= 2 {
		allowed++
	}
	if tests := target.Tests()[one.Address]; tests > allowed+1 {
		t.Errorf("%d tests of the member in use within %v", tests, time.Since(began))
	}
	if lines := append(process.Log.Find(mark, "is now down"), process.Log.Find(mark, "takes over")...); len(lines) > 0 {
		t.Errorf("the member was blamed: %v", lines)
	}
	live.Expect(t, "still here")
}

// The API service's test, which goes to a URL of its own, is one that others make (S2.3).
func TestMonitor_S2_3_APIServiceTest(t *testing.T) {
	t.Parallel()
	target := harness.StartTarget(t)
	servers, members, tags, sources := startMembers(t, 2)
	port, apiPort := harness.FreePort(t), harness.FreePort(t)
	configuration := harness.Monitored(harness.Configuration(port, nil, members...), seldom(target))
	configuration["services"] = []object{{"type": "api", "listen": "127.0.0.1", "listen_port": apiPort}}
	process := harness.StartReady(t, configuration)
	awaitUp(process, 0, tags...)
	connection, err := grpc.NewClient(fmt.Sprintf("127.0.0.1:%d", apiPort), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	api := daemon.NewStartedServiceClient(connection)
	mark := process.Log.Mark()
	servers[1].Become(harness.Refuse)
	for _, tag := range []string{tags[0], harness.BalancerTag} {
		if _, err = api.URLTest(t.Context(), &daemon.URLTestRequest{OutboundTag: tag}); err != nil {
			t.Fatal(err)
		}
		before := target.Tests()[sources[0]]
		// The service's own test fails, for its URL is not to be had here.
		harness.Eventually(t, soon, "our own test", func() bool { return target.Tests()[sources[0]] > before })
	}
	awaitDown(process, mark, tags[1])
	if lines := process.Log.Find(mark, "member "+tags[0]+" is now"); len(lines) > 0 {
		t.Errorf("a member that answers was blamed: %v", lines)
	}
}

// S1.4: the interval alone is a whole configuration.
func TestField18_IntervalAlone(t *testing.T) {
	t.Parallel()
	one := harness.StartFaulty(t, 2)
	configuration := harness.Monitored(harness.Configuration(harness.FreePort(t), nil, one.Outbound("one")), object{"interval": "1h"})
	harness.StartReady(t, configuration)
}
