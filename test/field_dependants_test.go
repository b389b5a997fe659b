package test

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"tarazu/test/harness"
)

// startTime runs an NTP server and returns its port.
func startTime(t *testing.T) int {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		const length, reference, origin, receive, transmit = 48, 16, 24, 32, 40
		message := make([]byte, length)
		for {
			count, client, err := conn.ReadFrom(message)
			if err != nil {
				return
			}
			if count != length {
				continue
			}
			answer := make([]byte, length)
			answer[0], answer[1] = 4<<3|4, 1 // version 4, server; the clock itself
			copy(answer[origin:], message[transmit:])
			const from1900 = 2208988800
			for _, field := range []int{reference, receive, transmit} {
				binary.BigEndian.PutUint32(answer[field:], uint32(time.Now().Unix()+from1900))
			}
			_, _ = conn.WriteTo(answer, client)
		}
	}()
	return conn.LocalAddr().(*net.UDPAddr).Port
}

// A DNS server, the time and a rule-set go through the group, which is then asked for connections before it is known to
// be there: at the first start and at many later ones, with a cache file, nothing panics and nothing waits for itself.
func TestField26_EverythingThroughTheGroup(t *testing.T) {
	t.Parallel()
	rules := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"version": 1, "rules": [{"domain": ["blocked.test"]}]}`)
	}))
	t.Cleanup(rules.Close)
	for _, strategy := range strategies {
		t.Run(strategy, func(t *testing.T) {
			t.Parallel()
			target, clock, names := harness.StartTarget(t), startTime(t), harness.StartNames(t)
			member := func(number int) object {
				return object{"type": "direct", "tag": fmt.Sprint("member", number), "inet4_bind_address": harness.Address(number)}
			}
			port := harness.FreePort(t)
			configuration := harness.Monitored(
				harness.Configuration(port, object{"strategy": strategy, "delay_acceptable_ratio": wide}, member(2), member(3)),
				harness.Monitoring(target, nil),
			)
			configuration["ntp"] = object{"enabled": true, "server": "127.0.0.1", "server_port": clock, "detour": harness.BalancerTag}
			names.Set("open.test", "127.0.0.1")
			names.Set("blocked.test", "127.0.0.1")
			server := names.Server("dns", "tcp")
			server["detour"] = harness.BalancerTag
			configuration["dns"] = object{"servers": []object{server}}
			configuration["experimental"].(object)["cache_file"] = object{"enabled": true}
			route := configuration["route"].(object)
			route["default_domain_resolver"] = "dns"
			route["rule_set"] = []object{{
				"type": "remote", "tag": "rules", "format": "source", "url": rules.URL, "download_detour": harness.BalancerTag,
			}}
			route["rules"] = []object{{"rule_set": "rules", "action": "reject"}, {"action": "resolve"}}
			process := harness.Start(t, configuration)
			client := harness.NewClient(port)
			link, err := url.Parse(target.URL)
			if err != nil {
				t.Fatal(err)
			}
			for start := range 8 { // with seven strategies more than fifty
				process.AwaitReady()
				process.Await(0, "updated time")
				for name, allowed := range map[string]bool{"open.test": true, "blocked.test": false} {
					link.Host = fmt.Sprintf("%s:%d", name, target.Port)
					source, err := client.Get(link.String())
					if allowed != (err == nil) {
						t.Errorf("start %d: %s: %q, %v", start, name, source, err)
					}
					if allowed && source != harness.Address(2) && source != harness.Address(3) {
						t.Errorf("start %d: %s was reached from %s", start, name, source)
					}
				}
				process.Stop()
				if status := process.Status(); status != 0 {
					t.Errorf("start %d: exit status %d", start, status)
				}
				process.Again()
			}
		})
	}
}
