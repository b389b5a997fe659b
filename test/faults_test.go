//go:build linux

package test

import (
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tarazu/test/harness"
)

// expectNobodyBlamed fails if the log after a mark says that a member is down, was left or has lost connections.
func expectNobodyBlamed(t *testing.T, process *harness.Process, mark int) {
	t.Helper()
	for _, words := range []string{"is now down", "takes over", "connections of member", "no member answers"} {
		if lines := process.Log.Find(mark, words); len(lines) > 0 {
			t.Errorf("somebody was blamed: %v", lines)
		}
	}
}

// The program is out of descriptors: no member is dead for it, no connection is closed, and when there are some again all
// goes on (S2.5a).
func TestFaults_S2_5a_OutOfDescriptors(t *testing.T) {
	t.Parallel()
	target, echoes := harness.StartTarget(t), harness.StartEchoes(t)
	_, members, tags, sources := startMembers(t, 2)
	port := harness.FreePort(t)
	process := harness.StartReady(t, harness.Monitored(
		harness.Configuration(port, object{"strategy": "lowest-delay", "interrupt_exist_connections": true}, members...),
		harness.Monitoring(target, object{"interval": "100ms"}),
	))
	awaitUp(process, 0, tags...)
	client := harness.NewClient(port)
	live := client.Open(t, echoes.Address)
	live.Expect(t, "hello")
	mark := process.Log.Mark()
	process.Limit(3) // those that it has it keeps
	for _, tag := range tags {
		process.Await(mark, "test of "+tag+" does not count", "too many open files")
	}
	process.Limit(1000)
	target.AwaitRounds(t, 2, sources...)
	expectNobodyBlamed(t, process, mark)
	live.Expect(t, "still here")
	if _, err := client.Get(target.URL); err != nil {
		t.Error(err)
	}
}

// The way to all members is gone, on this machine: none is dead for it, and none is tested because of it (S2.5a).
func TestFaults_S2_5a_NoRoute(t *testing.T) {
	t.Parallel()
	if !harness.InNamespace(t) {
		return
	}
	target := harness.StartTarget(t)
	_, members, tags, _ := startMembers(t, 2)
	uplink := harness.FirstUplink
	uplink.Face(t)
	for _, member := range members {
		member["server_port"] = forward(t, member["server_port"].(int))
		member["server"] = uplink.Gateway
	}
	port := harness.FreePort(t)
	process := harness.StartReady(t, harness.Monitored(
		harness.Configuration(port, object{"strategy": "failover"}, members...), harness.Monitoring(target, object{"interval": "100ms"}),
	))
	awaitUp(process, 0, tags...)
	mark := process.Log.Mark()
	uplink.Disconnect(t)
	client := harness.NewClient(port)
	for range 5 {
		if _, err := client.Get(target.URL); err == nil {
			t.Error("a connection succeeded without a route")
		}
	}
	for _, tag := range tags {
		process.Await(mark, "test of "+tag+" does not count", "unreachable")
	}
	expectNobodyBlamed(t, process, mark)
	uplink.Connect(t)
	uplink.Face(t)
	harness.Eventually(t, soon, "connections succeed again", func() bool {
		_, err := client.Get(target.URL)
		return err == nil
	})
	expectNobodyBlamed(t, process, mark)
}

// forward leads from every address, those to come too, to a port of 127.0.0.1, and returns its own.
func forward(t *testing.T, port int) int {
	t.Helper()
	address := harness.ServeTCP(t, "0.0.0.0", func(conn net.Conn) {
		upstream, err := net.Dial("tcp", harness.Loopback(port))
		if err != nil {
			return
		}
		defer upstream.Close()
		go func() { _, _ = io.Copy(upstream, conn) }()
		_, _ = io.Copy(conn, upstream)
	})
	return int(netip.MustParseAddrPort(address).Port())
}

// Clients by the thousand at once against a dead member: one test, and then all go elsewhere; nobody waits for anybody.
func TestFaults_AThousandClientsAgainstADeadMember(t *testing.T) {
	t.Parallel()
	target := harness.StartTarget(t)
	dead, good := harness.StartFaulty(t, 2), harness.StartFaulty(t, 3)
	port := harness.FreePort(t)
	process := harness.StartReady(t, harness.Monitored(
		harness.Configuration(port, object{"strategy": "failover"}, dead.Outbound("dead"), good.Outbound("good")),
		harness.Monitoring(target, object{"interval": "1h", "url_test_timeout": "5s"}),
	))
	awaitUp(process, 0, "dead", "good")
	dead.Become(harness.Reset)
	var clients sync.WaitGroup
	var failures atomic.Int64
	for range 2000 {
		clients.Go(func() {
			client := harness.NewClient(port)
			client.Timeout = 20 * time.Second
			if _, err := client.Get(target.URL); err != nil {
				failures.Add(1)
			}
		})
	}
	clients.Wait()
	awaitDown(process, 0, "dead")
	if failed := int(failures.Load()); failed == 0 || dead.Connections() != failed+1 {
		t.Errorf("%d failures, %d connections to the dead member: not one test", failed, dead.Connections())
	}
	expectShares(t, "afterwards", harness.NewClient(port).Shares(t, target.URL, 10), equally(10, good.Address))
}
