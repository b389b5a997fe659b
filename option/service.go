package option

// The monitor is a service of the box. Its type is not one that a configuration may write: it is made from
// `experimental.monitoring`, or by the first balancer of a box that has none.
const (
	TypeMonitoring = "monitoring"
	TagMonitoring  = "experimental.monitoring"
)

// MonitoringServiceOptions is what the monitor is made from; both parts may be absent.
type MonitoringServiceOptions struct {
	// Written says that `experimental.monitoring` is in the configuration, so that what any group reaches is tested,
	// not only what a balancer reaches (SPEC S2.1).
	Written      bool
	Monitoring   MonitoringOptions
	UnifiedDelay bool
}
