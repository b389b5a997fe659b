package test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"tarazu/test/harness"
)

// Every way to give a configuration comes to the same running program: its balancer tests what the monitoring of
// another file says, and carries connections.
func TestRun_Sources(t *testing.T) {
	t.Parallel()
	for _, source := range []struct {
		name  string
		start func(t *testing.T, outbounds, experimental object) *harness.Process
	}{
		{"stdin", func(t *testing.T, outbounds, experimental object) *harness.Process {
			outbounds["experimental"] = experimental["experimental"]
			text, err := harness.Encode(outbounds)
			if err != nil {
				t.Fatal(err)
			}
			return harness.StartWith(t, nil, string(text), "-c", "stdin")
		}},
		{"two files", func(t *testing.T, outbounds, experimental object) *harness.Process {
			files := map[string]any{"one.json": outbounds, "two.json": experimental}
			return harness.StartWith(t, files, "", "-c", "one.json", "-c", "two.json")
		}},
		{"two files, the other order", func(t *testing.T, outbounds, experimental object) *harness.Process {
			files := map[string]any{"two.json": outbounds, "one.json": experimental}
			return harness.StartWith(t, files, "", "-c", "two.json", "-c", "one.json")
		}},
		{"a directory", func(t *testing.T, outbounds, experimental object) *harness.Process {
			files := map[string]any{"parts/a.json": outbounds, "parts/b.json": experimental, "parts/c.text": "no configuration"}
			return harness.StartWith(t, files, "", "-C", "parts")
		}},
		{"comments and trailing commas", func(t *testing.T, outbounds, experimental object) *harness.Process {
			outbounds["experimental"] = experimental["experimental"]
			text, err := harness.Encode(outbounds)
			if err != nil {
				t.Fatal(err)
			}
			loose := strings.ReplaceAll(string(text), "\n    }\n", ",\n    }, // and so on\n")
			loose = strings.Replace(loose, "{", "{ /* begins */ # here\n", 1)
			return harness.Start(t, loose)
		}},
	} {
		t.Run(source.name, func(t *testing.T) {
			t.Parallel()
			target := harness.StartTarget(t)
			one, two := harness.StartFaulty(t, 2), harness.StartFaulty(t, 3)
			port := harness.FreePort(t)
			process := source.start(t,
				harness.Configuration(port, object{"delay_acceptable_ratio": wide}, one.Outbound("one"), two.Outbound("two")),
				harness.Monitored(object{}, harness.Monitoring(target, nil)))
			awaitUp(process, 0, "one", "two")
			expectShares(t, source.name, harness.NewClient(port).Shares(t, target.URL, 10), equally(10, one.Address, two.Address))
		})
	}
}

// ours is a configuration with everything that sing-box does not know.
const ours = `{
	"outbounds": [{"type": "balancer", "tag": "group", "outbounds": ["a"], "strategy": "lowest-delay", "tolerance": 0}, {"type": "direct", "tag": "a"}],
	"experimental": {
		"cache_file": {"enabled": true},
		"monitoring": {"urls": ["http://127.0.0.1/"], "interval": "1m0s", "idle_timeout": "0s", "jitter": 0},
		"unified_delay": {"enabled": true}
	}
}`

func decoded(t *testing.T, text string) (value object) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return value
}

// expectOurs fails unless a configuration says the same of experimental and of the balancer as ours. One word may
// stand for a list of it.
func expectOurs(t *testing.T, text string) {
	t.Helper()
	expected, found := decoded(t, ours), decoded(t, text)
	if monitoring, isObject := found["experimental"].(object)["monitoring"].(object); isObject {
		if word, isWord := monitoring["urls"].(string); isWord {
			monitoring["urls"] = []any{word}
		}
	}
	if !reflect.DeepEqual(found["experimental"], expected["experimental"]) {
		t.Errorf("experimental is %v, not %v", found["experimental"], expected["experimental"])
	}
	balancer := expected["outbounds"].([]any)[0]
	if outbounds, _ := found["outbounds"].([]any); len(outbounds) == 0 || !reflect.DeepEqual(outbounds[0], balancer) {
		t.Errorf("the balancer is not %v in %v", balancer, found["outbounds"])
	}
}

// `format` keeps our keys, and what it writes it leaves as it is.
func TestFormat_KeepsOurs(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	path := filepath.Join(directory, "config.json")
	if err := harness.WriteFile(path, ours); err != nil {
		t.Fatal(err)
	}
	result := harness.Run(t, directory, "", "format")
	if result.Status != 0 {
		t.Fatal(result.Errors)
	}
	expectOurs(t, result.Output)
	if result = harness.Run(t, directory, "", "format", "-w"); result.Status != 0 {
		t.Fatal(result.Errors)
	}
	written, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	expectOurs(t, string(written))
	harness.Run(t, directory, "", "format", "-w")
	if again, _ := os.ReadFile(path); string(again) != string(written) {
		t.Errorf("formatted twice it is\n%s\nnot\n%s", again, written)
	}
}

// `merge` keeps our keys, whichever file they are in.
func TestMerge_KeepsOurs(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	whole := decoded(t, ours)
	experimental := whole["experimental"].(object)
	for name, part := range map[string]any{
		"a.json": object{"outbounds": whole["outbounds"]},
		"b.json": object{"experimental": object{"monitoring": experimental["monitoring"]}},
		"c.json": object{"experimental": object{"unified_delay": experimental["unified_delay"], "cache_file": experimental["cache_file"]}},
	} {
		if err := harness.WriteFile(filepath.Join(directory, name), part); err != nil {
			t.Fatal(err)
		}
	}
	result := harness.Run(t, directory, "", "merge", "merged.json", "-c", "a.json", "-c", "b.json", "-c", "c.json")
	if result.Status != 0 {
		t.Fatal(result.Errors)
	}
	merged, err := os.ReadFile(filepath.Join(directory, "merged.json"))
	if err != nil {
		t.Fatal(err)
	}
	expectOurs(t, string(merged))
}

// `version` names this project and what it is built on.
func TestVersion(t *testing.T) {
	t.Parallel()
	result := harness.Run(t, t.TempDir(), "", "version")
	if result.Status != 0 || !strings.Contains(result.Output, "tarazu version ") || !strings.Contains(result.Output, "sing-box version 1.14.1") {
		t.Errorf("exit status %d: %s%s", result.Status, result.Output, result.Errors)
	}
}
