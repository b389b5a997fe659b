package option

import (
	C "github.com/sagernet/sing-box/constant"
	box "github.com/sagernet/sing-box/option"
)

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
	// Servers are those that `probe: tcp` connects to, by the tag of their outbound (S7.5).
	Servers map[string]TCPServer
}

// TCPServer is where an outbound connects to, and how.
type TCPServer struct {
	Server     string
	ServerPort uint16
	Dialer     box.DialerOptions
}

// tcpServers are the servers of all outbounds that have one that accepts TCP connections.
func (o *Options) tcpServers() map[string]TCPServer {
	servers := make(map[string]TCPServer)
	for i, outbound := range o.Outbounds {
		server, hasServer := outbound.Options.(box.ServerOptionsWrapper)
		if !hasServer || !acceptsTCP(outbound) {
			continue
		}
		options := server.TakeServerOptions()
		if options.Server == "" || options.ServerPort == 0 {
			continue
		}
		it := TCPServer{Server: options.Server, ServerPort: options.ServerPort}
		if dialer, isDialer := outbound.Options.(box.DialerOptionsWrapper); isDialer {
			it.Dialer = dialer.TakeDialerOptions()
		}
		servers[tagOr(outbound.Tag, i)] = it
	}
	return servers
}

// acceptsTCP reports whether an outbound's server listens for TCP, as far as its protocol says.
func acceptsTCP(outbound box.Outbound) bool {
	var transport *box.V2RayTransportOptions
	switch options := outbound.Options.(type) {
	case *box.HysteriaOutboundOptions, *box.Hysteria2OutboundOptions, *box.TUICOutboundOptions:
		return false
	case *box.NaiveOutboundOptions:
		return !options.QUIC
	case *box.VMessOutboundOptions:
		transport = options.Transport
	case *box.VLESSOutboundOptions:
		transport = options.Transport
	case *box.TrojanOutboundOptions:
		transport = options.Transport
	}
	return transport == nil || transport.Type != C.V2RayTransportTypeQUIC
}

// tcpProbed returns the settings' `probe: tcp` for a balancer, its own or the global one.
func (o *Options) tcpProbed(balancer *BalancerOutboundOptions) bool {
	settings, err := ResolveMonitoring(o.Monitoring, balancer.Monitoring, false)
	return err == nil && settings.Probe == ProbeTCP
}
