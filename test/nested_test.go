package test

import (
	"fmt"
	"maps"
	"net/url"
	"testing"

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
