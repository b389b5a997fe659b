package test

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"tarazu/test/harness"
)

// S1.2: a wrong configuration is found by `check` and never starts; one line says where, what was found and what is
// allowed.
func TestCheck_S1_2_Wrong(t *testing.T) {
	t.Parallel()
	balancer := func(fields string) string {
		return fmt.Sprintf(`{"outbounds": [{"type": "balancer", "tag": "group", %s}, {"type": "direct", "tag": "a"}, {"type": "direct", "tag": "b"}]}`, fields)
	}
	withField := func(field string) string { return balancer(`"outbounds": ["a", "b"], ` + field) }
	monitoring := func(field string) string {
		return fmt.Sprintf(`{"experimental": {"monitoring": {%s}}}`, field)
	}
	for _, story := range []struct {
		name          string
		configuration string
		names         []string
	}{
		{"no members", balancer(`"outbounds": []`), []string{"group", "outbounds", "at least one"}},
		{"unknown member", balancer(`"outbounds": ["a", "c"]`), []string{"group", "outbounds", `"c"`, "a, b"}},
		{"itself", balancer(`"outbounds": ["a", "group"]`), []string{"group", "outbounds", "cycle"}},
		{"itself at depth", `{"outbounds": [
			{"type": "balancer", "tag": "outer", "outbounds": ["middle"]},
			{"type": "selector", "tag": "middle", "outbounds": ["inner"]},
			{"type": "balancer", "tag": "inner", "outbounds": ["outer"]}
		]}`, []string{"outer", "middle", "inner", "outbounds", "cycle"}},
		{"itself by a detour", `{"outbounds": [
			{"type": "balancer", "tag": "group", "outbounds": ["proxy"]},
			{"type": "socks", "tag": "proxy", "server": "127.0.0.1", "server_port": 1, "detour": "group"}
		]}`, []string{"group", "proxy", "cycle"}},
		{"unknown strategy", withField(`"strategy": "fastest"`), []string{"group", "strategy", `"fastest"`, "round-robin", "lowest-delay"}},
		{"strategy in capitals", withField(`"strategy": "Round-Robin"`), []string{"group", "strategy", `"Round-Robin"`, "round-robin"}},
		{"unknown sticky word", withField(`"sticky_hash": ["Domain"]`), []string{"group", "sticky_hash", `"Domain"`, "domain"}},
		{"none beside another", withField(`"sticky_hash": ["none", "domain"]`), []string{"group", "sticky_hash", `"none"`, `"domain"`}},
		{"ratio below 1", withField(`"delay_acceptable_ratio": 0.5`), []string{"group", "delay_acceptable_ratio", "0.5", "1"}},
		{"negative number", withField(`"max_retry": -1`), []string{"group", "max_retry", "-1", "0"}},
		{"negative tolerance", withField(`"tolerance": -5`), []string{"group", "tolerance", "-5"}},
		{"smoothing of 0", withField(`"smoothing": 0`), []string{"group", "smoothing", "0"}},
		{"weight of 0", withField(`"weights": {"a": 0}`), []string{"group", "weights", "a", "0", "1"}},
		{"weight of a stranger", withField(`"weights": {"c": 2}`), []string{"group", "weights", "c", "a, b"}},
		{"unknown field", withField(`"stratgy": "round-robin"`), []string{"group", "stratgy"}},
		{"wrong type", withField(`"pool": "three"`), []string{"group", "pool"}},
		{"pattern without match", balancer(`"include": ["^c"]`), []string{"group", "include", `"^c"`}},
		{"pattern that is none", balancer(`"include": ["("]`), []string{"group", "include", `"("`}},
		{"own interval of 0", withField(`"monitoring": {"interval": "0s"}`), []string{"group", "monitoring", "interval", "0s"}},
		{"own settings, unknown field", withField(`"monitoring": {"intervall": "1s"}`), []string{"group", "intervall"}},
		{"tag twice", `{"outbounds": [{"type": "direct", "tag": "a"}, {"type": "block", "tag": "a"}]}`, []string{`"a"`, "tag"}},
		{"unknown type", `{"outbounds": [{"type": "balancr", "tag": "a"}]}`, []string{"balancr"}},
		{"global interval of 0", monitoring(`"interval": "0s"`), []string{"experimental.monitoring", "interval", "0s"}},
		{"global URL that is none", monitoring(`"urls": ["example"]`), []string{"experimental.monitoring", "urls", `"example"`, "http"}},
		{"no workers", monitoring(`"workers": 0`), []string{"experimental.monitoring", "workers", "0"}},
		{"unknown probe", monitoring(`"probe": "ping"`), []string{"experimental.monitoring", "probe", `"ping"`, "url", "tcp"}},
		{"unknown status", monitoring(`"expected_status": ["2xx"]`), []string{"experimental.monitoring", "expected_status", `"2xx"`}},
		{"unknown global field", monitoring(`"url": "x"`), []string{"monitoring", "url"}},
		{"unknown experimental field", `{"experimental": {"monitor": {}}}`, []string{"monitor"}},
	} {
		for _, command := range []string{"check", "run"} {
			t.Run(command+", "+story.name, func(t *testing.T) {
				t.Parallel()
				result := harness.Run(t, t.TempDir(), story.configuration, command, "--disable-color", "-c", "stdin")
				if result.Status != 1 {
					t.Errorf("exit status %d, not 1", result.Status)
				}
				if len(result.ErrorLines()) != 1 || result.Output != "" {
					t.Errorf("not exactly one line: %q %q", result.Errors, result.Output)
				}
				for _, name := range story.names {
					if !strings.Contains(result.Errors, name) {
						t.Errorf("%q is not in: %s", name, result.Errors)
					}
				}
			})
		}
	}
}

// `check` starts nothing: a port in use is none of its concern. What is right costs no word.
func TestCheck_StartsNothing(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	configuration := harness.Configuration(listener.Addr().(*net.TCPAddr).Port, nil, object{"type": "direct", "tag": "a"})
	configuration["experimental"] = object{"cache_file": object{"enabled": true}}
	directory := t.TempDir()
	if err := harness.WriteFile(filepath.Join(directory, "config.json"), configuration); err != nil {
		t.Fatal(err)
	}
	result := harness.Run(t, directory, "", "check")
	if result.Status != 0 || result.Errors != "" || result.Output != "" {
		t.Errorf("exit status %d, %q %q", result.Status, result.Errors, result.Output)
	}
	if files, _ := filepath.Glob(filepath.Join(directory, "*")); len(files) != 1 {
		t.Errorf("files were made: %v", files)
	}
}

// S1.2: a known field that the strategy does not use is accepted, and named in one warning.
func TestCheck_S1_2_UnusedFields(t *testing.T) {
	t.Parallel()
	result := harness.Run(t, t.TempDir(), `{"outbounds": [
		{"type": "balancer", "tag": "group", "outbounds": ["a"], "pool": 2, "ttl": "1m"}, {"type": "direct", "tag": "a"}
	]}`, "check", "--disable-color", "-c", "stdin")
	if result.Status != 0 || len(result.ErrorLines()) != 1 {
		t.Errorf("exit status %d: %s", result.Status, result.Errors)
	}
	for _, name := range []string{"WARN", "group", "pool", "ttl"} {
		if !strings.Contains(result.Errors, name) {
			t.Errorf("%q is not in: %s", name, result.Errors)
		}
	}
}

// A syntax error is told with file, row and column, also behind the keys that sing-box does not know.
func TestCheck_SyntaxErrorPosition(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	text := "{\n  // a comment\n  \"experimental\": {\n    \"monitoring\": {\"interval\": \"1s\"},\n  },\n  \"outbounds\": [,]\n}\n"
	if err := harness.WriteFile(filepath.Join(directory, "broken.json"), text); err != nil {
		t.Fatal(err)
	}
	result := harness.Run(t, directory, "", "check", "--disable-color", "-c", "broken.json")
	if result.Status != 1 || len(result.ErrorLines()) != 1 {
		t.Errorf("exit status %d: %s", result.Status, result.Errors)
	}
	for _, name := range []string{"broken.json", "row 6", "column 17"} {
		if !strings.Contains(result.Errors, name) {
			t.Errorf("%q is not in: %s", name, result.Errors)
		}
	}
}
