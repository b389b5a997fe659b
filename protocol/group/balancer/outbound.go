// Package balancer is the `balancer` outbound: a group that gives each connection one of its members.
//
// What is decided is decided by pure functions (decide, and a strategy's choose) from results of tests; one goroutine
// (group) runs them and publishes snapshots; a connection reads the snapshot, picks and dials. This file is the glue to
// sing-box and holds no policy.
package balancer

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"

	"tarazu/adapter"
	"tarazu/experimental/monitoring"
	"tarazu/option"

	box "github.com/sagernet/sing-box/adapter"
	"github.com/sagernet/sing-box/adapter/outbound"
	"github.com/sagernet/sing-box/common/dialer"
	"github.com/sagernet/sing-box/log"
	E "github.com/sagernet/sing/common/exceptions"
	N "github.com/sagernet/sing/common/network"
	"github.com/sagernet/sing/service"
)

// RegisterOutbound adds the `balancer` type to a registry.
func RegisterOutbound(registry *outbound.Registry) {
	outbound.Register[option.BalancerOutboundOptions](registry, option.TypeBalancer, NewOutbound)
}

var (
	_ box.URLTestGroup             = (*Outbound)(nil)
	_ box.InterfaceUpdateListener  = (*Outbound)(nil)
	_ box.Lifecycle                = (*Outbound)(nil)
	_ box.ConnectionHandler        = (*Outbound)(nil)
	_ box.PacketConnectionHandler  = (*Outbound)(nil)
	_ dialer.ParallelNetworkDialer = (*Outbound)(nil)
	_ adapter.Subscriber           = (*Outbound)(nil)
)

// Outbound is a balancer (SPEC S1.1).
type Outbound struct {
	outbound.Adapter
	options     option.BalancerOutboundOptions
	keys        keys
	logger      log.ContextLogger
	outbounds   box.OutboundManager
	endpoints   box.EndpointManager
	connections box.ConnectionManager
	monitor     adapter.Monitor
	openings    *openings

	tags        []string // members, once patterns are resolved
	members     []memberOutbound
	loads       []load
	nests       bool // some member is a group
	group       *group
	stop        context.CancelFunc
	closings    sync.WaitGroup
	unsubscribe func()
}

// memberOutbound is what a connection needs of a member.
type memberOutbound struct {
	box.Outbound
	trackers [networks]tracker
	// told is the debug line of a connection, made once so that telling costs nothing where nobody listens.
	told []any
}

// NewOutbound makes a balancer from options, which it checks as far as it can alone: that members exist and do not lead
// back is checked by option.Validate, and again when the box starts.
func NewOutbound(ctx context.Context, _ box.Router, logger log.ContextLogger, tag string, options option.BalancerOutboundOptions) (box.Outbound, error) {
	if err := options.Validate(); err != nil {
		return nil, E.Cause(err, "outbound/balancer[", tag, "]")
	}
	monitor, err := monitoring.FromContext(ctx, options.Monitoring)
	if err != nil {
		return nil, E.Cause(err, "outbound/balancer[", tag, "]: monitoring")
	}
	return &Outbound{
		Adapter:     outbound.NewAdapter(option.TypeBalancer, tag, []string{N.NetworkTCP, N.NetworkUDP}, nil),
		options:     options,
		keys:        newKeys(options),
		logger:      logger,
		outbounds:   service.FromContext[box.OutboundManager](ctx),
		endpoints:   service.FromContext[box.EndpointManager](ctx),
		connections: service.FromContext[box.ConnectionManager](ctx),
		monitor:     monitor,
		openings:    newOpenings(),
		tags:        options.Outbounds,
	}, nil
}

// Dependencies are the members, so that they start first. Those that patterns find are known from the first start
// stage on.
func (o *Outbound) Dependencies() []string {
	return slices.Compact(slices.Sorted(slices.Values(o.tags)))
}

// Start follows sing-box's stages: patterns are resolved when everything is built, the first choice is made when the
// members have started; the monitor says when the box has.
func (o *Outbound) Start(stage box.StartStage) error {
	switch stage {
	case box.StartStateInitialize:
		return o.resolveMembers()
	case box.StartStateStart:
		return o.start()
	}
	return nil
}

// Close ends the group's goroutine and what it closes. Other open connections are the connection manager's to close.
func (o *Outbound) Close() error {
	if o.stop == nil {
		return nil
	}
	o.unsubscribe()
	o.stop()
	<-o.group.done
	o.closings.Wait()
	return nil
}

func (o *Outbound) start() error {
	members := make([]member, len(o.tags))
	o.members = make([]memberOutbound, len(o.tags))
	o.loads = make([]load, len(o.tags))
	for i, tag := range o.tags {
		detour, loaded := o.outbounds.Outbound(tag)
		if !loaded {
			return E.New("outbounds: ", tag, " is not an outbound or endpoint of this configuration")
		}
		o.members[i].Outbound = detour
		for n := range networks {
			tracker := &o.members[i].trackers[n]
			tracker.load, tracker.monitor, tracker.retest = &o.loads[i], o.monitor, func() { o.retest(i) }
		}
		o.members[i].told = []any{"connection through member ", tag}
		weight := max(o.options.Weights[tag], 1)
		members[i] = member{tag: tag, weight: weight, udp: carriesUDP(detour)}
	}
	strategy := newStrategy(setting{options: o.options, tag: o.Tag(), members: members, loads: o.loads, random: rand.IntN})
	o.group = newGroup(newConfig(strategy, o.options), o.monitor.DebounceWindow())
	reach := newReach(o)
	o.nests = len(reach.nested) > 0
	o.group.translate = reach.translate
	o.group.perform = o.perform
	// Subscribed before the results are read: what happens meanwhile waits in the mailbox.
	o.unsubscribe = o.monitor.Subscribe(o)
	for i := range members {
		members[i].result = o.monitor.Result(reach.leaf[i])
	}
	wake := o.group.begin(newState(members))
	var ctx context.Context
	ctx, o.stop = context.WithCancel(context.Background())
	go o.group.run(ctx, wake)
	return nil
}

// Deliver takes an event from the monitor.
func (o *Outbound) Deliver(event adapter.Event) {
	if event.Kind == adapter.EventReach && !o.nests {
		return
	}
	o.group.deliver(event)
}

// Network tells what the members carry, so that a group around this one can choose (S3.3).
func (o *Outbound) Network() []string {
	if snapshot := o.snapshot(); snapshot != nil && !snapshot.carriesUDP {
		return []string{N.NetworkTCP}
	}
	return o.Adapter.Network()
}

// Now names the member that a person should see (S5.4); before the start, the first.
func (o *Outbound) Now() string {
	if snapshot := o.snapshot(); snapshot != nil {
		return snapshot.members[snapshot.shown].tag
	}
	if len(o.tags) == 0 {
		return ""
	}
	return o.tags[0]
}

// All names the members in list order.
func (o *Outbound) All() []string {
	return o.tags
}

// OpenConnections counts the open connections of each member through this group, in the order of All: TCP and UDP, those
// being opened included. A flow that a TUN inbound sends past all groups is not among them.
func (o *Outbound) OpenConnections() []int64 {
	open := make([]int64, len(o.loads))
	for i := range o.loads {
		open[i] = o.loads[i].open.Load()
	}
	return open
}

// URLTest runs the group's own test for whoever asks for it through an API, and returns the delays of what answers, by
// tag: the members, and what those that are groups lead to (S2.3).
func (o *Outbound) URLTest(ctx context.Context) (map[string]uint16, error) {
	delays := make(map[string]uint16)
	for _, tag := range o.monitor.Test(ctx, o.Tag()) {
		o.addDelay(delays, tag, tag)
	}
	for i, tag := range o.tags {
		o.addDelay(delays, tag, leafTag(o.outbounds, o.members[i].Outbound))
	}
	return delays, nil
}

func (o *Outbound) addDelay(delays map[string]uint16, tag, leaf string) {
	if result := o.monitor.Result(leaf); result.State == adapter.StateUp {
		delays[tag] = result.Delay
	}
}

// PerformUpdateCheck takes in a test that an API made of a member (S2.3).
func (o *Outbound) PerformUpdateCheck() {
	o.monitor.Refresh()
}

// InterfaceUpdated is called when the network has changed (S2.5).
func (o *Outbound) InterfaceUpdated(context.Context) {
	o.monitor.NetworkChanged()
}

func (o *Outbound) snapshot() *snapshot {
	if o.group == nil {
		return nil
	}
	return o.group.current.Load()
}

func carriesUDP(detour box.Outbound) bool {
	return slices.Contains(detour.Network(), N.NetworkUDP)
}
