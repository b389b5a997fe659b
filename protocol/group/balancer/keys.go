package balancer

import (
	"context"
	"slices"

	"tarazu/common/affinity"
	"tarazu/option"

	box "github.com/sagernet/sing-box/adapter"
	"github.com/sagernet/sing/common"
	M "github.com/sagernet/sing/common/metadata"
)

// keys gives connections the keys by which a strategy keeps them together (S4.5).
type keys struct {
	// hashed: the strategy goes by keys at all.
	hashed   bool
	selector affinity.Selector
}

func newKeys(options option.BalancerOutboundOptions) keys {
	sticky := options.StickyHashOrDefault()
	return keys{
		hashed: options.Strategy == option.StrategyConsistentHashing ||
			len(sticky) > 0 && !slices.Contains(sticky, option.StickyNone),
		selector: common.Must1(affinity.Compile(sticky)), // its words were validated
	}
}

// of returns the key of a connection to a destination. Where sing-box knows the client's connection that this one is
// made for, that counts: the group may be another outbound's detour, or be given a resolved address.
func (k keys) of(ctx context.Context, destination M.Socksaddr) uint64 {
	if !k.hashed {
		return 0
	}
	return k.selector.Key(connectionOf(box.ContextFrom(ctx), destination))
}

func connectionOf(metadata *box.InboundContext, destination M.Socksaddr) affinity.Connection {
	var c affinity.Connection
	if metadata != nil && metadata.Destination.IsValid() {
		destination = metadata.Destination
		c.Source, c.User, c.Inbound, c.Domain = metadata.Source.Addr, metadata.User, metadata.Inbound, metadata.Domain
		if process := metadata.ProcessInfo; process != nil {
			c.Process = affinity.ProcessOf(process.AndroidPackageNames, process.ProcessPath)
		}
	}
	if destination.Fqdn != "" {
		c.Domain = destination.Fqdn
	}
	c.Destination, c.DestinationPort = destination.Addr, destination.Port
	return c
}
