package option_test

import (
	"context"
	"reflect"
	"strings"
	"testing"

	"tarazu/include"
	"tarazu/option"

	box "github.com/sagernet/sing-box/option"
	"github.com/sagernet/sing/common/json"
	"github.com/sagernet/sing/common/json/badjson"
)

func decode(t *testing.T, content string) option.Options {
	t.Helper()
	options, err := json.UnmarshalExtendedContext[option.Options](include.Context(context.Background()), []byte(content))
	if err != nil {
		t.Fatal(err)
	}
	return options
}

// everyField sets all fields of S1.1 and S1.4.
const everyField = `{
  "outbounds": [
    {
      "type": "balancer", "tag": "all", "outbounds": ["a", "b"], "include": ["^x"], "exclude": "y$", "strategy": "pool", "pool": 4,
      "sticky_hash": ["process", "domain", "source_ip", "dest_ip", "dest_port", "user", "inbound"],
      "delay_acceptable_ratio": 3, "max_retry": 2, "ttl": "1h", "interrupt_exist_connections": true, "tolerance": 0,
      "tolerance_ratio": 0, "smoothing": 0.3, "cooldown": "0s", "weights": {"a": 2}, "slow_start": "30s",
      "monitoring": {"urls": "http://127.0.0.1/", "interval": "1h", "probe": "url"}
    },
    {"type": "direct", "tag": "a"}, {"type": "direct", "tag": "b"}, {"type": "direct", "tag": "x1"}, {"type": "direct", "tag": "xy"}
  ],
  "experimental": {
    "cache_file": {"enabled": true},
    "monitoring": {
      "urls": ["https://a.example/", "http://b.example:8080/x"], "interval": "1m", "url_test_timeout": "3s", "workers": 5,
      "debounce_window": "0s", "idle_timeout": "0s", "probe": "url", "expected_status": ["204", "200-299"], "rise": 2, "fall": 3, "jitter": 0
    },
    "unified_delay": {"enabled": true}
  }
}`

func TestOptions_S1_1_EveryFieldRoundTrips(t *testing.T) {
	ctx := include.Context(context.Background())
	first := decode(t, everyField)
	written, err := json.MarshalContext(ctx, first)
	if err != nil {
		t.Fatal(err)
	}
	second := decode(t, string(written))
	first.RawMessage, second.RawMessage = nil, nil
	if !reflect.DeepEqual(first, second) {
		t.Fatalf("written as %s", written)
	}
	balancer := reflect.ValueOf(first.Outbounds[0].Options.(*option.BalancerOutboundOptions)).Elem()
	monitoring := reflect.ValueOf(first.Monitoring).Elem()
	for _, object := range []reflect.Value{balancer, monitoring} {
		for i := range object.NumField() {
			if object.Field(i).IsZero() {
				t.Errorf("%s.%s was not read", object.Type(), object.Type().Field(i).Name)
			}
		}
	}
	if warnings, err := first.Validate(); err != nil || len(warnings) != 1 {
		t.Fatal(warnings, err)
	}
}

func TestOptions_S1_4_AllFormsOfJSON(t *testing.T) {
	for name, content := range map[string]string{
		"comments":        "{ // one\n\"experimental\": { /* two */ \"monitoring\": { # three\n \"workers\": 7 } } }",
		"trailing commas": `{"experimental": {"monitoring": {"workers": 7,},},}`,
		"escaped key":     `{"experimental": {"\u006donitoring": {"workers": 7}}}`,
	} {
		if options := decode(t, content); options.Monitoring == nil || *options.Monitoring.Workers != 7 {
			t.Errorf("%s: %+v", name, options.Monitoring)
		}
	}
}

func TestOptions_S1_4_SeveralFiles(t *testing.T) {
	ctx := include.Context(context.Background())
	var merged json.RawMessage
	for _, content := range []string{
		`{"experimental": {"monitoring": {"workers": 7, "urls": ["http://a.example/"]}}}`,
		`{"experimental": {"monitoring": {"rise": 2, "urls": ["http://b.example/"]}, "unified_delay": {"enabled": true}}}`,
	} {
		var err error
		if merged, err = badjson.MergeJSON(ctx, decode(t, content).RawMessage, merged, false); err != nil {
			t.Fatal(err)
		}
	}
	options := decode(t, string(merged))
	if *options.Monitoring.Workers != 7 || *options.Monitoring.Rise != 2 || len(options.Monitoring.URLs) != 2 || !options.UnifiedDelay.Enabled {
		t.Fatalf("%s", merged)
	}
}

func TestOptions_ErrorsTellThePlace(t *testing.T) {
	ctx := include.Context(context.Background())
	for _, it := range []struct{ content, line string }{
		{"{\n\"experimental\": {\"monitoring\": {\"workers\": 7}},\n  x}", "invalid character 'x' looking for beginning of object key string: row 3, column 3"},
		{`{"experimental": {"monitoring": {}, "monitorin": {}}}`, `experimental.monitorin: json: unknown field "monitorin"`},
		{`{"experimental": {"monitoring": {}}, "outbond": []}`, `outbond: json: unknown field "outbond"`},
		{`{"experimental": {"monitoring": {"interval": "1x"}}}`, `experimental.monitoring.interval: time: unknown unit "x" in duration "1x"`},
		{
			`{"experimental": {"monitoring": {"worker": 1}}}`,
			`experimental.monitoring.worker: json: unknown field "worker"; allowed: urls, interval, url_test_timeout, workers, ` +
				`debounce_window, idle_timeout, probe, expected_status, rise, fall, jitter; did you mean "workers"?`,
		},
		{`{"outbounds": [{"type": "direct"}, {"type": "socks", "tag": "s", "server_port": "x"}]}`, `outbound/socks[s]: outbounds[1].server_port: json: cannot unmarshal string`},
		{`{"outbounds": [{"type": "direct"}, {"type": "direct", "foo": 1}]}`, `outbound/direct[1]: outbounds[1].foo: json: unknown field "foo"`},
	} {
		_, err := json.UnmarshalExtendedContext[option.Options](ctx, []byte(it.content))
		if err == nil || !strings.HasPrefix(err.Error(), it.line) {
			t.Errorf("%s\n found %v\n not %s", it.content, err, it.line)
		}
	}
}

func TestOptions_UnknownFieldOfABalancerTellsTheFields(t *testing.T) {
	content := `{"outbounds": [{"type": "balancer", "tag": "b", "outbounds": ["d"], "tolerence": 1}]}`
	_, err := json.UnmarshalExtendedContext[option.Options](include.Context(context.Background()), []byte(content))
	for _, part := range []string{"outbound/balancer[b]", `"tolerence"`, "allowed: outbounds, include,", `did you mean "tolerance"?`} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("no %s in %v", part, err)
		}
	}
}

// What sing-box's own options accept, ours read and write alike.
func TestOptions_S1_1_SameAsSingBox(t *testing.T) {
	ctx := include.Context(context.Background())
	for _, content := range []string{
		`{}`,
		`{"experimental": {}}`,
		`{"log": {"level": "warn"}, "experimental": {"cache_file": {"enabled": true, "path": "x.db"}}}`,
		`{"inbounds": [{"type": "mixed", "listen_port": 1080}], "outbounds": [{"type": "urltest", "outbounds": ["d"]}, {"type": "direct", "tag": "d"}], "route": {"final": "d"}}`,
		`{"dns": {"servers": [{"type": "local", "tag": "l"}]}, "ntp": {"enabled": true, "server": "t.example"}, "certificate": {"store": "mozilla"}}`,
	} {
		var theirs box.Options
		if err := theirs.UnmarshalJSONContext(ctx, []byte(content)); err != nil {
			t.Fatal(err)
		}
		ours := decode(t, content)
		if !reflect.DeepEqual(ours.Box(), theirs) {
			t.Errorf("%s is read otherwise", content)
		}
		written, err := json.MarshalContext(ctx, ours)
		if err != nil {
			t.Fatal(err)
		}
		if expected, _ := json.MarshalContext(ctx, theirs); string(written) != string(expected) {
			t.Errorf("%s, not %s", written, expected)
		}
	}
	for _, content := range []string{
		`{"inbounds": [{"type": "mixed", "tag": "x"}, {"type": "mixed", "tag": "x"}]}`,
		`{"outbounds": [{"type": "direct", "tag": "x"}, {"type": "block", "tag": "x"}]}`,
		`{"outbounds": [{"type": "direct"}, {"type": "block", "tag": "0"}]}`,
		`{"http_clients": [{"tag": "x"}, {"tag": "x"}]}`,
		`{"http_clients": [{}]}`,
	} {
		var theirs box.Options
		if theirs.UnmarshalJSONContext(ctx, []byte(content)) == nil {
			t.Errorf("sing-box accepts %s", content)
		}
		if _, err := json.UnmarshalExtendedContext[option.Options](ctx, []byte(content)); err == nil {
			t.Errorf("accepted: %s", content)
		}
	}
}

func TestBox_MonitorOnlyWhereWritten(t *testing.T) {
	if services := new(option.Options).Box().Services; len(services) != 0 {
		t.Fatal(services)
	}
	options := decode(t, `{"experimental": {"unified_delay": {"enabled": true}}}`)
	for range 2 { // a reload builds from the same options again
		services := options.Box().Services
		if len(services) != 1 || len(options.Services) != 0 {
			t.Fatal(services, options.Services)
		}
		monitor := services[0].Options.(*option.MonitoringServiceOptions)
		if monitor.Written || !monitor.UnifiedDelay {
			t.Fatal(monitor)
		}
	}
}

func TestBox_S4_5_ProcessIsLookedUpWhereAKeyNeedsIt(t *testing.T) {
	for fields, looked := range map[string]bool{
		`"strategy": "pool"`:                                        true,
		`"strategy": "sticky-sessions"`:                             false,
		`"strategy": "sticky-sessions", "sticky_hash": ["process"]`: true,
		`"strategy": "round-robin", "sticky_hash": ["process"]`:     false,
		`"strategy": "pool", "sticky_hash": ["none"]`:               false,
	} {
		options := decode(t, `{"outbounds": [{"type": "balancer", "tag": "b", "outbounds": ["d"], `+fields+`}]}`)
		route := options.Box().Route
		if found := route != nil && route.FindProcess; found != looked || options.Route != nil {
			t.Errorf("%s: looked up: %v", fields, found)
		}
	}
}
