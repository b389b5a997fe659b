package balancer

import (
	"context"
	"net"
	"net/netip"
	"time"

	"tarazu/experimental/monitoring"

	box "github.com/sagernet/sing-box/adapter"
	"github.com/sagernet/sing-box/common/dialer"
	"github.com/sagernet/sing-box/common/interrupt"
	C "github.com/sagernet/sing-box/constant"
	E "github.com/sagernet/sing/common/exceptions"
	M "github.com/sagernet/sing/common/metadata"
	N "github.com/sagernet/sing/common/network"
)

// pick gives a connection its member and counts it there; whoever ends it counts it off.
func (o *Outbound) pick(ctx context.Context, n network, destination M.Socksaddr) (int, error) {
	snapshot := o.snapshot()
	if snapshot == nil {
		return noMember, E.New("outbound/balancer[", o.Tag(), "]: not started")
	}
	if n == networkUDP && !snapshot.carriesUDP {
		return noMember, E.New("outbound/balancer[", o.Tag(), "]: no member carries UDP")
	}
	o.monitor.Touch(ctx)
	index := snapshot.pickers[n].pick(o.keys.of(ctx, destination))
	if !snapshot.reserves {
		o.loads[index].open.Add(1)
	}
	o.logger.DebugContext(ctx, o.members[index].told...)
	return index, nil
}

// pickFor is pick for a call that may be one of several for the same connection (S5.1).
func (o *Outbound) pickFor(ctx context.Context, n network, destination M.Socksaddr, loop loop, isLoop bool) (int, error) {
	if isLoop && !loop.first {
		if index, remembered := o.openings.chosen.Get(loop.opening); remembered {
			o.loads[index].open.Add(1)
			return index, nil
		}
	}
	index, err := o.pick(ctx, n, destination)
	if err == nil && isLoop {
		o.openings.chosen.Add(loop.opening, index)
	}
	return index, err
}

// DialContext opens a connection through the member that the strategy picks.
func (o *Outbound) DialContext(ctx context.Context, network string, destination M.Socksaddr) (net.Conn, error) {
	n, err := networkOf(network)
	if err != nil {
		return nil, err
	}
	loop, isLoop := loopOver(box.ContextFrom(ctx), n, destination.Addr)
	index, err := o.pickFor(ctx, n, destination, loop, isLoop)
	if err != nil {
		return nil, err
	}
	conn, err := o.members[index].DialContext(ctx, network, destination)
	if isLoop {
		loop.finish(o.openings, err == nil)
	}
	return o.opened(ctx, n, index, conn, err)
}

// ListenPacket opens an association through the member that the strategy picks.
func (o *Outbound) ListenPacket(ctx context.Context, destination M.Socksaddr) (net.PacketConn, error) {
	loop, isLoop := loopOver(box.ContextFrom(ctx), networkUDP, destination.Addr)
	index, err := o.pickFor(ctx, networkUDP, destination, loop, isLoop)
	if err != nil {
		return nil, err
	}
	conn, err := o.members[index].ListenPacket(ctx, destination)
	if isLoop {
		loop.finish(o.openings, err == nil)
	}
	return o.associated(ctx, index, conn, err)
}

// DialParallelNetwork opens a connection to one of several addresses, all of them through one member (S5.1).
func (o *Outbound) DialParallelNetwork(ctx context.Context, network string, destination M.Socksaddr, addresses []netip.Addr, strategy *C.NetworkStrategy, interfaceType, fallbackInterfaceType []C.InterfaceType, fallbackDelay time.Duration) (net.Conn, error) {
	n, err := networkOf(network)
	if err != nil {
		return nil, err
	}
	index, err := o.pick(ctx, n, destination)
	if err != nil {
		return nil, err
	}
	member := o.members[index].Outbound
	var conn net.Conn
	if len(addresses) == 1 && strategy == nil && interfaceType == nil && fallbackInterfaceType == nil {
		conn, err = member.DialContext(ctx, network, M.SocksaddrFrom(addresses[0], destination.Port)) // nothing to try in turn
	} else {
		conn, err = dialer.DialSerialNetwork(ctx, member, network, destination, addresses, strategy, interfaceType, fallbackInterfaceType, fallbackDelay)
	}
	return o.opened(ctx, n, index, conn, err)
}

// ListenSerialNetworkPacket opens an association to one of several addresses, all through one member (S5.1).
func (o *Outbound) ListenSerialNetworkPacket(ctx context.Context, destination M.Socksaddr, addresses []netip.Addr, strategy *C.NetworkStrategy, interfaceType, fallbackInterfaceType []C.InterfaceType, fallbackDelay time.Duration) (net.PacketConn, netip.Addr, error) {
	index, err := o.pick(ctx, networkUDP, destination)
	if err != nil {
		return nil, netip.Addr{}, err
	}
	conn, address, err := dialer.ListenSerialNetworkPacket(ctx, o.members[index].Outbound, destination, addresses, strategy, interfaceType, fallbackInterfaceType, fallbackDelay)
	conn, err = o.associated(ctx, index, conn, err)
	return conn, address, err
}

// NewConnection takes a connection from an inbound.
func (o *Outbound) NewConnection(ctx context.Context, conn net.Conn, metadata box.InboundContext, onClose N.CloseHandlerFunc) {
	client := accepted(ctx, conn)
	o.connections.NewConnection(client.context(), o, client, metadata, onClose)
}

// NewPacketConnection takes an association from an inbound.
func (o *Outbound) NewPacketConnection(ctx context.Context, conn N.PacketConn, metadata box.InboundContext, onClose N.CloseHandlerFunc) {
	o.connections.NewPacketConnection(interrupt.ContextWithIsExternalConnection(ctx), o, conn, metadata, onClose)
}

// opened tracks a connection, or reports that its member failed to open it. A connection is not retried (S5.2).
func (o *Outbound) opened(ctx context.Context, n network, index int, conn net.Conn, err error) (net.Conn, error) {
	if err != nil {
		o.dialFailed(ctx, index, err)
		return nil, err
	}
	return o.members[index].trackers[n].newConn(ctx, conn), nil
}

func (o *Outbound) associated(ctx context.Context, index int, conn net.PacketConn, err error) (net.PacketConn, error) {
	if err != nil {
		o.dialFailed(ctx, index, err)
		return nil, err
	}
	return o.members[index].trackers[networkUDP].newPacketConn(ctx, conn), nil
}

// dialFailed has a member tested at once (S5.3), unless the failure is the client's own doing or this machine's (S2.5a).
func (o *Outbound) dialFailed(ctx context.Context, index int, err error) {
	o.loads[index].open.Add(-1)
	if ctx.Err() == nil && !monitoring.IsLocal(err) {
		o.retest(index)
	}
}

// retest has what a member leads to tested at once (S5.3); a balancer that it leads to has seen to it itself.
func (o *Outbound) retest(index int) {
	if innerBalancer(o.outbounds, o.members[index].Outbound) == nil {
		o.monitor.DialFailed(leafTag(o.outbounds, o.members[index].Outbound))
	}
}

func networkOf(network string) (network, error) {
	switch N.NetworkName(network) {
	case N.NetworkTCP:
		return networkTCP, nil
	case N.NetworkUDP:
		return networkUDP, nil
	default:
		return 0, E.Extend(N.ErrUnknownNetwork, network)
	}
}
