package option_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"tarazu/include"
	"tarazu/option"

	"github.com/sagernet/sing/common/json"
)

// FuzzConfig: a configuration, whatever it is, is refused in one line, or is accepted and means the same after it was
// written and read again. Nothing panics.
func FuzzConfig(f *testing.F) {
	for _, seed := range []string{
		everyField,
		`{}`,
		`{"outbounds": [{"type": "balancer", "outbounds": []}]}`,
		`{"outbounds": [{"type": "balancer", "tag": "a", "outbounds": ["b", "b"]}, {"type": "balancer", "tag": "b", "outbounds": ["a"]}]}`,
		`{"outbounds": [{"type": "balancer", "tag": "🇩🇪 §", "include": ".", "exclude": ["^x"], "weights": {"y": 2}}, {"type": "direct", "tag": "y"}]}`,
		`{"outbounds": [{"type": "balancer", "tag": "a", "outbounds": ["s"], "monitoring": {"probe": "tcp"}}, {"type": "socks", "tag": "s", "server": "x", "server_port": 1}]}`,
		`{"experimental": {"monitoring": {"urls": ["http://x/"], "expected_status": ["204", "200-299"], "jitter": 0}, "unified_delay": {"enabled": true}}}`,
		"// comment\n{\"outbounds\": [{\"type\": \"selector\", \"tag\": \"a\", \"outbounds\": [\"a\"]},],}",
		`{"outbounds": [{"type": "balancer", "tolerance": -1, "smoothing": 0, "cooldown": "-1s"}]}`,
	} {
		f.Add([]byte(seed))
	}
	ctx := include.Context(context.Background())
	f.Fuzz(func(t *testing.T, content []byte) {
		options, err := json.UnmarshalExtendedContext[option.Options](ctx, content)
		if err != nil {
			return // what the decoder says may quote what it could not read
		}
		warnings, err := options.Validate()
		if err != nil {
			expectOneLine(t, err.Error())
			return
		}
		for _, warning := range warnings {
			expectOneLine(t, warning)
		}
		written, err := json.MarshalContext(ctx, &options)
		if err != nil {
			t.Fatalf("accepted, and cannot be written: %v", err)
		}
		again, err := json.UnmarshalExtendedContext[option.Options](ctx, written)
		if err != nil {
			t.Fatalf("accepted, and cannot be read again: %v\n%s", err, written)
		}
		if _, err = again.Validate(); err != nil {
			t.Fatalf("accepted, and refused when read again: %v\n%s", err, written)
		}
		if twice, err := json.MarshalContext(ctx, &again); err != nil || !bytes.Equal(written, twice) {
			t.Fatalf("not the same when written again: %v\n%s\n%s", err, written, twice)
		}
		_ = options.Box()
	})
}

func expectOneLine(t *testing.T, text string) {
	t.Helper()
	if text == "" || strings.ContainsAny(text, "\r\n") {
		t.Errorf("not one line: %q", text)
	}
}
