package option

import (
	"github.com/sagernet/sing/common/json/badoption"
)

// TypeBalancer is the `type` of the outbound that this project adds.
const TypeBalancer = "balancer"

// The strategies of SPEC S1.1. An empty strategy counts as round-robin.
const (
	StrategyRoundRobin        = "round-robin"
	StrategyLowestDelay       = "lowest-delay"
	StrategyConsistentHashing = "consistent-hashing"
	StrategyStickySessions    = "sticky-sessions"
	StrategyPool              = "pool"
	StrategyFailover          = "failover"
	StrategyLeastConnections  = "least-connections"
)

// The words of `sticky_hash` (SPEC S1.1, S4.5).
const (
	StickyProcess  = "process"
	StickyDomain   = "domain"
	StickySourceIP = "source_ip"
	StickyDestIP   = "dest_ip"
	StickyDestPort = "dest_port"
	StickyUser     = "user"
	StickyInbound  = "inbound"
	StickyNone     = "none"
)

// BalancerOutboundOptions configures `{"type": "balancer"}` (SPEC S1.1). A pointer marks a field for which absent and
// zero differ, or whose explicit zero is an error.
type BalancerOutboundOptions struct {
	// Outbounds lists member tags; a tag named twice counts as two members (S1.3).
	Outbounds []string `json:"outbounds,omitempty" reference:"outbound"`
	// Include and Exclude are RE2 patterns over tags (S1.6).
	Include badoption.Listable[string] `json:"include,omitempty"`
	Exclude badoption.Listable[string] `json:"exclude,omitempty"`
	// Strategy is one of the Strategy constants; empty is round-robin.
	Strategy string `json:"strategy,omitempty" enum:"round-robin,lowest-delay,consistent-hashing,sticky-sessions,pool,failover,least-connections"`
	// Pool is the number of slots of the pool strategy; 0 is 3.
	Pool int `json:"pool,omitempty"`
	// StickyHash names what a connection sticks on, for pool and sticky-sessions.
	StickyHash badoption.Listable[string] `json:"sticky_hash,omitempty"`
	// DelayAcceptableRatio is how much slower than the fastest a member may be (S3.2); at least 1, 0 is 2.
	DelayAcceptableRatio float64 `json:"delay_acceptable_ratio,omitempty"`
	// MaxRetry is the number of further hash picks before the list is used (S4.2, S4.3).
	MaxRetry int `json:"max_retry,omitempty"`
	// TTL is how long a sticky key keeps its member after its last use; 0 is for ever (S4.3).
	TTL badoption.Duration `json:"ttl,omitempty"`
	// InterruptExistConnections also closes connections that came from inbounds (S6.2).
	InterruptExistConnections bool `json:"interrupt_exist_connections,omitempty"`
	// Tolerance, in milliseconds, and ToleranceRatio, a share of the current member's delay, say how much faster
	// another member must be to take over (S3.5). Absent: 50 and 0.1 for lowest-delay, unset for pool.
	Tolerance      *int     `json:"tolerance,omitempty"`
	ToleranceRatio *float64 `json:"tolerance_ratio,omitempty"`
	// Smoothing is the weight of the newest result in the moving average, in (0,1]; absent is 1, which is off (S8.2).
	Smoothing *float64 `json:"smoothing,omitempty"`
	// Cooldown is the least time between two changes made for speed or load alone (S3.6). Absent: 30s for
	// lowest-delay, else 0.
	Cooldown *badoption.Duration `json:"cooldown,omitempty"`
	// Weights maps a member's tag to its share, at least 1.
	Weights map[string]int `json:"weights,omitempty"`
	// SlowStart is how long a member that came back takes to get its full share; 0 is off.
	SlowStart badoption.Duration `json:"slow_start,omitempty"`
	// Monitoring overrides the test settings of `experimental.monitoring` for this group (S2.1a).
	Monitoring *MonitoringOptions `json:"monitoring,omitempty"`
}
