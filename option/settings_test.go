package option_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"tarazu/option"

	"github.com/sagernet/sing/common/json/badoption"
)

func TestResolveMonitoring_S1_4_Defaults(t *testing.T) {
	settings, err := option.ResolveMonitoring(nil, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	expected := option.MonitoringSettings{
		URLs: []string{"https://www.gstatic.com/generate_204"}, Interval: 5 * time.Minute, Timeout: 5 * time.Second, Workers: 10,
		DebounceWindow: 500 * time.Millisecond, IdleTimeout: 10 * time.Minute, Probe: "url", Rise: 1, Fall: 1, Jitter: 0.1,
	}
	if !reflect.DeepEqual(settings, expected) {
		t.Fatalf("%+v", settings)
	}
}

func TestResolveMonitoring_S2_1a_GroupBeforeGlobal(t *testing.T) {
	global := &option.MonitoringOptions{Workers: new(3), Interval: new(badoption.Duration(time.Hour)), IdleTimeout: new(badoption.Duration(0)), Rise: new(2)}
	group := &option.MonitoringOptions{Workers: new(4), URLs: []string{"http://127.0.0.1/"}, Jitter: new(0.0)}
	settings, err := option.ResolveMonitoring(global, group, true)
	if err != nil {
		t.Fatal(err)
	}
	if settings.Workers != 4 || settings.Interval != time.Hour || settings.IdleTimeout != 0 || settings.Rise != 2 ||
		settings.URLs[0] != "http://127.0.0.1/" || settings.Jitter != 0 || !settings.UnifiedDelay || settings.Fall != 1 {
		t.Fatalf("%+v", settings)
	}
}

func TestResolveMonitoring_Wrong(t *testing.T) {
	zero, negative := new(badoption.Duration(0)), new(badoption.Duration(-1))
	for field, options := range map[string]option.MonitoringOptions{
		`urls: found "ftp://x/"`:               {URLs: []string{"ftp://x/"}},
		`urls: found "http://"`:                {URLs: []string{"http://"}},
		`urls: found "http://[::1"`:            {URLs: []string{"http://a/", "http://[::1"}},
		`interval: found 0s`:                   {Interval: zero},
		`url_test_timeout: found 0s`:           {URLTestTimeout: zero},
		`debounce_window: found -1ns`:          {DebounceWindow: negative},
		`idle_timeout: found -1ns`:             {IdleTimeout: negative},
		`workers: found 0`:                     {Workers: new(0)},
		`rise: found -2`:                       {Rise: new(-2)},
		`fall: found 0`:                        {Fall: new(0)},
		`jitter: found 1`:                      {Jitter: new(1.0)},
		`jitter: found -0.5`:                   {Jitter: new(-0.5)},
		`probe: found "icmp"`:                  {Probe: "icmp"},
		`expected_status: found "299-200"`:     {ExpectedStatus: []string{"299-200"}},
		`expected_status: found "ok"`:          {ExpectedStatus: []string{"204", "ok"}},
		`expected_status: found "99"`:          {ExpectedStatus: []string{"99"}},
		`expected_status: found "200-299-300"`: {ExpectedStatus: []string{"200-299-300"}},
		`expected_status: found ""`:            {ExpectedStatus: []string{""}},
	} {
		for _, err := range []error{second(option.ResolveMonitoring(&options, nil, false)), second(option.ResolveMonitoring(nil, &options, false))} {
			if err == nil || !strings.HasPrefix(err.Error(), field+"; allowed: ") {
				t.Errorf("%v, not %s", err, field)
			}
		}
	}
}

func second[A, B any](_ A, b B) B { return b }
