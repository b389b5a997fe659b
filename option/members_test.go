package option_test

import (
	"slices"
	"strings"
	"testing"

	"tarazu/option"
)

func TestExpandMembers_S1_6(t *testing.T) {
	nodes := []option.Node{
		{Tag: "outer", LeadsTo: []string{"group"}}, {Tag: "group"}, {Tag: "de-1"}, {Tag: "fr-1"}, {Tag: "de-2"},
		{Tag: "through", LeadsTo: []string{"outer"}}, {Tag: "old-de"},
	}
	for _, it := range []struct {
		name                        string
		outbounds, include, exclude []string
		members, unmatched          []string
		err                         string
	}{
		{name: "named only", outbounds: []string{"fr-1", "de-1"}, members: []string{"fr-1", "de-1"}},
		{name: "twice named", outbounds: []string{"fr-1", "fr-1"}, members: []string{"fr-1", "fr-1"}},
		{name: "found after the named", outbounds: []string{"fr-1"}, include: []string{"^de-"}, members: []string{"fr-1", "de-1", "de-2"}},
		{name: "configuration order over patterns", include: []string{"^fr", "de-2", "de-1"}, members: []string{"de-1", "fr-1", "de-2"}},
		{name: "named and found once", outbounds: []string{"de-2"}, include: []string{"^de-"}, members: []string{"de-2", "de-1"}},
		{name: "never itself nor what leads to it", include: []string{"."}, members: []string{"de-1", "fr-1", "de-2", "old-de"}},
		{name: "taken away", include: []string{"de"}, exclude: []string{"^old"}, members: []string{"de-1", "de-2"}},
		{name: "no match beside a named one", outbounds: []string{"fr-1"}, include: []string{"^us"}, members: []string{"fr-1"}, unmatched: []string{`include: "^us"`}},
		{name: "exclude without a match", outbounds: []string{"fr-1"}, exclude: []string{"^us"}, members: []string{"fr-1"}, unmatched: []string{`exclude: "^us"`}},
		{name: "no match at all", include: []string{"^us"}, err: `include: "^us" matches no outbound`},
		{name: "all taken away", include: []string{"^de"}, exclude: []string{"de"}, err: `exclude: found ["de"]`},
		{name: "not RE2", include: []string{"(?=x)"}, err: `include: found "(?=x)"; allowed: an RE2 pattern`},
		{name: "nothing", err: "outbounds: found an empty list"},
	} {
		t.Run(it.name, func(t *testing.T) {
			members, err := option.ExpandMembers(nodes, "group", it.outbounds, it.include, it.exclude)
			if it.err != "" {
				if err == nil || !strings.HasPrefix(err.Error(), it.err) {
					t.Fatal(err)
				}
				return
			}
			if err != nil || !slices.Equal(members.Tags, it.members) || !slices.Equal(members.Unmatched, it.unmatched) {
				t.Fatalf("%v, %v", members, err)
			}
		})
	}
}

func TestValidate_S1_6_TwoGroupsThatIncludeAll(t *testing.T) {
	options := decode(t, `{"outbounds": [
		{"type": "balancer", "tag": "one", "include": ["."]},
		{"type": "balancer", "tag": "two", "include": ["."]},
		{"type": "direct", "tag": "a"}
	]}`)
	// The first may have the second as its member; then the second must not have the first.
	if warnings, err := options.Validate(); err != nil || len(warnings) != 0 {
		t.Fatal(warnings, err)
	}
}

func TestValidate_S1_2_CyclesAsTheirPath(t *testing.T) {
	for content, path := range map[string]string{
		`{"type": "balancer", "tag": "a", "outbounds": ["a"]}`:                                                       "a → a",
		`{"type": "balancer", "tag": "a", "outbounds": ["b"]}, {"type": "selector", "tag": "b", "outbounds": ["a"]}`: "a → b → a",
		`{"type": "direct", "tag": "x"}, {"type": "urltest", "tag": "a", "outbounds": ["x", "b"]},
		 {"type": "balancer", "tag": "b", "outbounds": ["c"]}, {"type": "selector", "tag": "c", "outbounds": ["a"]}`: "a → b → c → a",
		`{"type": "balancer", "tag": "a", "outbounds": ["s"]}, {"type": "socks", "tag": "s", "server": "127.0.0.1", "server_port": 1, "detour": "a"}`: "a → s → a",
	} {
		options := decode(t, `{"outbounds": [`+content+`]}`)
		if _, err := options.Validate(); err == nil || !strings.Contains(err.Error(), "cycle "+path+";") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestValidate_S1_2_OneWarningNamesUnusedFields(t *testing.T) {
	options := decode(t, `{"outbounds": [
		{"type": "balancer", "tag": "b", "strategy": "lowest-delay", "outbounds": ["d"], "pool": 3, "ttl": "1h", "weights": {"d": 2}, "tolerance": 10},
		{"type": "direct", "tag": "d"}
	]}`)
	warnings, err := options.Validate()
	if err != nil || !slices.Equal(warnings, []string{"outbound/balancer[b]: strategy lowest-delay does not use pool, ttl, weights"}) {
		t.Fatal(warnings, err)
	}
}
