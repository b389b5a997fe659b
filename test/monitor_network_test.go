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
	mark, before := process.Log.Mark(), target.Tests()
	expectOneRound := func(when string, uplink harness.Uplink) {
		t.Helper()
		process.Await(mark, "updated default interface "+uplink.Name)
		target.AwaitRounds(t, 1, sources...)
		for _, source := range sources {
			if tests := target.Tests()[source] - before[source]; tests != 1 {
				t.Errorf("%s: %d tests of %s, not one", when, tests, source)
			}
		}
		if again := use(when); again != used {
			t.Errorf("%s: %s is used, not %s", when, again, used)
		}
		for _, words := range []string{"is now", "takes over", "no member answers"} {
			if lines := process.Log.Find(mark, words); len(lines) > 0 {
				t.Errorf("%s: somebody was blamed: %v", when, lines)
			}
		}
		mark, before = process.Log.Mark(), target.Tests()
	}
	better := harness.Uplink{Name: "better", Address: "198.51.100.2/24", Gateway: "198.51.100.1", Metric: 50}
	better.Connect(t)
	expectOneRound("a better network", better)

	harness.FirstUplink.Disconnect(t)
	better.Disconnect(t)
	process.Await(mark, "missing default interface")
	if again := use("without a network"); again != used {
		t.Errorf("%s is used without a network, not %s", again, used)
	}
	harness.FirstUplink.Connect(t)
	expectOneRound("a network again", harness.FirstUplink)
}
