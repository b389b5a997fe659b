// Package include joins sing-box's registries with this project's. It is the one place that knows both.
package include

import (
	"context"

	"github.com/sagernet/sing-box"
	"github.com/sagernet/sing-box/include"
)

// Context returns ctx with everything that a box needs to be built from a configuration: sing-box's inbounds,
// outbounds, endpoints, DNS servers and services, the `balancer` outbound and the monitor.
// An embedder calls it once and gives the result to the JSON decoder and to box.New.
func Context(ctx context.Context) context.Context {
	return box.Context(
		ctx,
		include.InboundRegistry(),
		include.OutboundRegistry(),
		include.EndpointRegistry(),
		include.DNSTransportRegistry(),
		include.ServiceRegistry(),
		include.CertificateProviderRegistry(),
	)
}
