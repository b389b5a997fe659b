// Package include joins sing-box's registries with this project's. It is the one place that knows both.
package include

import (
	"context"
	"slices"

	"tarazu/experimental/monitoring"
	"tarazu/option"
	"tarazu/protocol/group/balancer"

	"github.com/sagernet/sing-box"
	"github.com/sagernet/sing-box/adapter"
	"github.com/sagernet/sing-box/include"
)

// Context returns ctx with everything that a box needs to be built from a configuration: sing-box's inbounds,
// outbounds, endpoints, DNS servers and services, the `balancer` outbound and the monitor.
// An embedder calls it once and gives the result to the JSON decoder and to box.New.
func Context(ctx context.Context) context.Context {
	outbounds := include.OutboundRegistry()
	balancer.RegisterOutbound(outbounds)
	services := include.ServiceRegistry()
	monitoring.RegisterService(services)
	return box.Context(
		ctx,
		include.InboundRegistry(),
		outbounds,
		include.EndpointRegistry(),
		include.DNSTransportRegistry(),
		serviceRegistry{services},
		include.CertificateProviderRegistry(),
	)
}

// serviceRegistry makes the monitor, but does not let a configuration write it among its services: its options stand
// at `experimental.monitoring`.
type serviceRegistry struct {
	adapter.ServiceRegistry
}

func (r serviceRegistry) OptionTypes() []string {
	return slices.DeleteFunc(r.ServiceRegistry.OptionTypes(), isHidden)
}

func (r serviceRegistry) CreateOptions(serviceType string) (any, bool) {
	if isHidden(serviceType) {
		return nil, false
	}
	return r.ServiceRegistry.CreateOptions(serviceType)
}

func isHidden(serviceType string) bool {
	return serviceType == option.TypeMonitoring
}
