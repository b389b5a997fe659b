//go:build linux

package test

import (
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"tarazu/test/harness"
)

// Flows of a TUN inbound reach the group one by one, TCP and UDP, with every strategy: each is spread, or kept, as a
// connection of another inbound is.
func TestTUN_FlowsGoThroughTheGroup(t *testing.T) {
	t.Parallel()
	device, err := os.OpenFile("/dev/net/tun", os.O_RDWR, 0)
	if err != nil {
		t.Skip("this machine has no TUN device: ", err)
	}
	_ = device.Close()
	if !harness.InNamespace(t) {
		return
	}
	greeter, echo, target := harness.StartGreeter(t), harness.StartEcho(t), harness.StartTarget(t)
	one, two := harness.StartServer(t, harness.SOCKS, 2), harness.StartServer(t, harness.SOCKS, 3)
	sources := []string{one.Address, two.Address}
	tags := []string{one.Tag, two.Tag}
	outbounds := []object{one.Outbound(), two.Outbound()}
	var rules []object
	routed := func(i int) string { return fmt.Sprintf("198.51.100.%d", i+1) }
	for i, strategy := range strategies {
		outbounds = append(outbounds, object{
			"type": "balancer", "tag": strategy, "strategy": strategy, "outbounds": tags, "delay_acceptable_ratio": wide,
		})
		rules = append(rules, object{"ip_cidr": routed(i) + "/32", "outbound": strategy, "override_address": "127.0.0.1"})
	}
	process := harness.StartReady(t, harness.Monitored(object{
		"log": object{"level": "debug"},
		"inbounds": []object{{
			"type": "tun", "interface_name": "tun-tarazu", "address": "172.19.0.1/30", "stack": "gvisor",
			"auto_route": true, "route_address": "198.51.100.0/24",
		}},
		"outbounds": outbounds,
		"route":     object{"rules": rules},
	}, harness.Monitoring(target, nil)))
	for _, strategy := range strategies {
		for _, tag := range tags {
			process.Await(0, "balancer["+strategy+"]", "member "+tag+" is now up")
		}
	}
	target.AwaitRounds(t, 1, sources...)
	// ask opens a flow and returns what is answered: where the flow came from. A packet is sent again, as one may be lost.
	ask := func(network, address string) string {
		conn, err := net.DialTimeout(network, address, soon)
		if err != nil {
			t.Error(err)
			return ""
		}
		defer conn.Close()
		answer := make([]byte, 64)
		for range 5 {
			if network == "udp" {
				_, _ = conn.Write([]byte("who am I?"))
			}
			_ = conn.SetReadDeadline(time.Now().Add(soon / 5))
			var count int
			if count, err = conn.Read(answer); err == nil {
				return string(answer[:count])
			}
		}
		t.Errorf("%s %s: %v", network, address, err)
		return ""
	}
	for i, strategy := range strategies {
		for network, server := range map[string]string{"tcp": greeter, "udp": echo.Address} {
			_, port, _ := net.SplitHostPort(server)
			shares := make(map[string]int)
			for range 10 {
				shares[ask(network, net.JoinHostPort(routed(i), port))]++
			}
			what := strategy + ", " + network
			switch strategy {
			case "round-robin":
				expectShares(t, what, shares, equally(10, sources...))
			case "least-connections": // an association stays open: the next goes elsewhere; of TCP some may be closing
				if shares[sources[0]] < 3 || shares[sources[1]] < 3 {
					t.Error(what, ": ", shares)
				}
			default: // one destination is one key; or one member has all
				if len(shares) != 1 {
					t.Error(what, ": ", shares)
				}
			}
		}
	}
	if found := process.Log.Find(0, "pre-match: forward"); len(found) > 0 {
		t.Error("flows went past the groups: ", found)
	}
}
