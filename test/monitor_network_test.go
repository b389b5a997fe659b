package test

import (
	"testing"

	"tarazu/test/harness"
)

// Another network has everything tested at once, for no round would for an hour; while there is none, nothing is, nobody
// is blamed, and the selection stays (S2.5).
func TestField6_NetworkGoesAndComes(t *testing.T) {
	t.Parallel()
	if !harness.InNamespace(t) {
		return
	}
	target := harness.StartTarget(t)
	_, members, tags, sources := startMembers(t, 3)
	port := harness.FreePort(t)
	configuration := harness.Monitored(
		harness.Configuration(port, object{"strategy": "lowest-delay", "outbounds": []string{tags[2], tags[0], tags[1]}}, members...), seldom(target),
	)
	process := harness.StartReady(t, configuration)
	awaitUp(process, 0, tags...)
	client := harness.NewClient(port)
	use := func(when string) string {
		t.Helper()
		source, err := client.Get(target.URL)
		if err != nil {
			t.Errorf("%s: %v", when, err)
		}
		return source
	}
	used := use("at first")
	mark := process.Log.Mark()
	const first, second = "192.0.2.2/24", "198.51.100.2/24"
	harness.Uplink{Name: "uplink", Address: first, Gateway: "192.0.2.1"}.Disconnect(t)
	process.Await(mark, "missing default interface")
	before := target.Tests()
	if again := use("without a network"); again != used {
		t.Errorf("%s is used without a network, not %s", again, used)
	}
	harness.Uplink{Name: "other", Address: second, Gateway: "198.51.100.1"}.Connect(t)
	process.Await(mark, "updated default interface other")
	target.AwaitRounds(t, 1, sources...)
	for _, source := range sources {
		if tests := target.Tests()[source] - before[source]; tests != 1 {
			t.Errorf("%d tests of %s, not one", tests, source)
		}
	}
	if again := use("on another network"); again != used {
		t.Errorf("%s is used on another network, not %s", again, used)
	}
	for _, words := range []string{"is now", "takes over", "no member answers"} {
		if lines := process.Log.Find(mark, words); len(lines) > 0 {
			t.Errorf("somebody was blamed: %v", lines)
		}
	}
}
