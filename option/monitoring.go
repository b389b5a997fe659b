package option

import (
	"github.com/sagernet/sing/common/json/badoption"
)

// The kinds of test of SPEC S1.4 and S7.5.
const (
	ProbeURL = "url"
	ProbeTCP = "tcp"
)

// MonitoringOptions configures the monitor: `experimental.monitoring`, or a group's own `monitoring`, where an absent
// field inherits (SPEC S1.4, S2.1a). An absent field has the default of S1.4's table.
type MonitoringOptions struct {
	URLs           badoption.Listable[string] `json:"urls,omitempty"`
	Interval       *badoption.Duration        `json:"interval,omitempty"`
	URLTestTimeout *badoption.Duration        `json:"url_test_timeout,omitempty"`
	Workers        *int                       `json:"workers,omitempty"`
	DebounceWindow *badoption.Duration        `json:"debounce_window,omitempty"`
	// IdleTimeout of 0 never stops rounds.
	IdleTimeout    *badoption.Duration        `json:"idle_timeout,omitempty"`
	Probe          string                     `json:"probe,omitempty" enum:"url,tcp"`
	ExpectedStatus badoption.Listable[string] `json:"expected_status,omitempty"`
	Rise           *int                       `json:"rise,omitempty"`
	Fall           *int                       `json:"fall,omitempty"`
	Jitter         *float64                   `json:"jitter,omitempty"`
}

// UnifiedDelayOptions is `experimental.unified_delay` (SPEC S1.4a).
type UnifiedDelayOptions struct {
	Enabled bool `json:"enabled,omitempty"`
}
