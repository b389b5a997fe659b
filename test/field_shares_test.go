package test

import (
	"fmt"
	"io"
	"net/http"
	"testing"

	"tarazu/test/harness"
)

// Exact shares, whatever else the program does for a connection or for somebody who looks at it: a look never moves the
// turn.
func TestField41_ExactShares(t *testing.T) {
	t.Parallel()
	const name = "several-addresses.test"
	sniff := object{"action": "sniff"}
	resolve := object{"action": "resolve"}
	for _, story := range []struct {
		name   string
		rules  []object
		named  bool // the destination is a name with several addresses
		polled bool // a dashboard looks at everything all the time
		nested bool // the group is in a selector
	}{
		{name: "alone"},
		{name: "sniffed", rules: []object{sniff}},
		{name: "several addresses, resolved", rules: []object{resolve}, named: true},
		{name: "polled Clash API", polled: true},
		{name: "in a selector", nested: true},
		{name: "all together", rules: []object{sniff, resolve}, named: true, polled: true, nested: true},
	} {
		for _, count := range []int{2, 4} {
			t.Run(fmt.Sprint(story.name, ", ", count, " members"), func(t *testing.T) {
				t.Parallel()
				target := harness.StartTarget(t)
				_, members, tags, sources := startMembers(t, count)
				port := harness.FreePort(t)
				configuration := harness.Monitored(
					harness.Configuration(port, object{"delay_acceptable_ratio": wide}, members...),
					harness.Monitoring(target, nil),
				)
				route := configuration["route"].(object)
				route["rules"] = story.rules
				link := target.URL
				if story.named {
					// Nobody listens at the first address: each connection is dialled twice.
					configuration["dns"] = object{"servers": []object{{
						"type": "hosts", "tag": "hosts", "predefined": object{name: []string{harness.Address(200), harness.Address(1)}},
					}}}
					link = fmt.Sprintf("http://%s:%d/", name, target.Port)
				}
				if story.nested {
					selector := object{"type": "selector", "tag": "selector", "outbounds": []string{harness.BalancerTag}}
					configuration["outbounds"] = append([]object{selector}, configuration["outbounds"].([]object)...)
					route["final"] = "selector"
				}
				controller := fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
				if story.polled {
					configuration["experimental"].(object)["clash_api"] = object{"external_controller": controller}
				}
				process := harness.StartReady(t, configuration)
				awaitUp(process, 0, tags...)
				if story.polled {
					defer poll(t, controller)()
				}
				expectShares(t, story.name, harness.NewClient(port).Shares(t, link, 100), equally(100, sources...))
			})
		}
	}
}

// poll looks at everything that a dashboard looks at, all the time until the returned function is called.
func poll(t *testing.T, controller string) (stop func()) {
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			for _, path := range []string{"proxies", "proxies/" + harness.BalancerTag, "connections", "group"} {
				response, err := http.Get(fmt.Sprintf("http://%s/%s", controller, path))
				if err != nil {
					t.Errorf("poll %s: %v", path, err)
					return
				}
				_, _ = io.Copy(io.Discard, response.Body)
				_ = response.Body.Close()
				if response.StatusCode != http.StatusOK {
					t.Errorf("poll %s: %s", path, response.Status)
					return
				}
			}
			select {
			case <-end:
				return
			default:
			}
		}
	}()
	return func() {
		close(end)
		<-ended
	}
}
