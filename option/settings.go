package option

import (
	"net/url"
	"strconv"
	"strings"
	"time"

	E "github.com/sagernet/sing/common/exceptions"
	"github.com/sagernet/sing/common/json/badoption"
)

// MonitoringSettings are the test settings that apply to a group: its own, the global ones, the defaults of SPEC S1.4.
type MonitoringSettings struct {
	URLs           []string
	Interval       time.Duration
	Timeout        time.Duration
	Workers        int
	DebounceWindow time.Duration
	// IdleTimeout of 0 never stops rounds.
	IdleTimeout time.Duration
	Probe       string
	// ExpectedStatus is empty where any status counts as an answer.
	ExpectedStatus []StatusRange
	Rise, Fall     int
	// Jitter is the largest deviation of Interval, as a share of it.
	Jitter       float64
	UnifiedDelay bool
}

// StatusRange is an inclusive range of HTTP statuses.
type StatusRange struct {
	Low, High int
}

// ResolveMonitoring returns the settings of a group: a field of its own object counts before the global one, and that
// before the default (S2.1a). Either may be nil. The error names the field, what was found and what is allowed.
func ResolveMonitoring(global, group *MonitoringOptions, unifiedDelay bool) (MonitoringSettings, error) {
	settings := MonitoringSettings{
		URLs:           []string{"https://www.gstatic.com/generate_204"},
		Interval:       5 * time.Minute,
		Timeout:        5 * time.Second,
		Workers:        10,
		DebounceWindow: 500 * time.Millisecond,
		IdleTimeout:    10 * time.Minute,
		Probe:          ProbeURL,
		Rise:           1,
		Fall:           1,
		Jitter:         0.1,
		UnifiedDelay:   unifiedDelay,
	}
	for _, options := range []*MonitoringOptions{global, group} {
		if options == nil {
			continue
		}
		if err := options.validate(); err != nil {
			return MonitoringSettings{}, err
		}
		if len(options.URLs) > 0 {
			settings.URLs = options.URLs
		}
		overrideDuration(&settings.Interval, options.Interval)
		overrideDuration(&settings.Timeout, options.URLTestTimeout)
		override(&settings.Workers, options.Workers)
		overrideDuration(&settings.DebounceWindow, options.DebounceWindow)
		overrideDuration(&settings.IdleTimeout, options.IdleTimeout)
		if options.Probe != "" {
			settings.Probe = options.Probe
		}
		if len(options.ExpectedStatus) > 0 {
			settings.ExpectedStatus, _ = ParseStatusRanges(options.ExpectedStatus)
		}
		override(&settings.Rise, options.Rise)
		override(&settings.Fall, options.Fall)
		override(&settings.Jitter, options.Jitter)
	}
	return settings, nil
}

func override[T any](setting *T, written *T) {
	if written != nil {
		*setting = *written
	}
}

func overrideDuration(setting *time.Duration, written *badoption.Duration) {
	if written != nil {
		*setting = time.Duration(*written)
	}
}

// validate checks each field by itself; positive durations work together whatever they are (S1.4).
func (o *MonitoringOptions) validate() error {
	for _, link := range o.URLs {
		target, err := url.Parse(link)
		if err != nil || target.Host == "" || target.Scheme != "http" && target.Scheme != "https" {
			return wrong("urls", strconv.Quote(link), "an http:// or https:// address")
		}
	}
	for _, duration := range []struct {
		field   string
		value   *badoption.Duration
		atLeast time.Duration
		allowed string
	}{
		{"interval", o.Interval, 1, "a duration above 0"},
		{"url_test_timeout", o.URLTestTimeout, 1, "a duration above 0"},
		{"debounce_window", o.DebounceWindow, 0, "a duration of at least 0"},
		{"idle_timeout", o.IdleTimeout, 0, "a duration of at least 0, where 0 never stops the tests"},
	} {
		if duration.value != nil && time.Duration(*duration.value) < duration.atLeast {
			return wrong(duration.field, time.Duration(*duration.value), duration.allowed)
		}
	}
	for _, number := range []struct {
		field string
		value *int
	}{{"workers", o.Workers}, {"rise", o.Rise}, {"fall", o.Fall}} {
		if number.value != nil && *number.value < 1 {
			return wrong(number.field, *number.value, "a whole number of at least 1")
		}
	}
	if o.Probe != "" && o.Probe != ProbeURL && o.Probe != ProbeTCP {
		return wrongWord("probe", o.Probe, []string{ProbeURL, ProbeTCP})
	}
	if o.Jitter != nil && !(*o.Jitter >= 0 && *o.Jitter < 1) {
		return wrong("jitter", *o.Jitter, "a number of at least 0 and below 1")
	}
	_, err := ParseStatusRanges(o.ExpectedStatus)
	return err
}

// ParseStatusRanges reads HTTP statuses ("204") and ranges of them ("200-299").
func ParseStatusRanges(texts []string) ([]StatusRange, error) {
	var ranges []StatusRange
	for _, text := range texts {
		low, high, isRange := strings.Cut(text, "-")
		if !isRange {
			high = low
		}
		first, err := strconv.Atoi(strings.TrimSpace(low))
		last, errLast := strconv.Atoi(strings.TrimSpace(high))
		if E.Errors(err, errLast) != nil || first < 100 || last > 599 || first > last {
			return nil, wrong("expected_status", strconv.Quote(text), `statuses ("204") or ranges of them ("200-299") from 100 to 599`)
		}
		ranges = append(ranges, StatusRange{first, last})
	}
	return ranges, nil
}
