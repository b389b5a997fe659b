package option

import (
	"slices"
	"strconv"
	"strings"
	"time"

	box "github.com/sagernet/sing-box/option"
	"github.com/sagernet/sing/common"
	E "github.com/sagernet/sing/common/exceptions"
	F "github.com/sagernet/sing/common/format"
)

// Strategies are the words of `strategy` (SPEC S1.1).
var Strategies = []string{
	StrategyRoundRobin, StrategyLowestDelay, StrategyConsistentHashing, StrategyStickySessions, StrategyPool,
	StrategyFailover, StrategyLeastConnections,
}

var stickyWords = []string{
	StickyProcess, StickyDomain, StickySourceIP, StickyDestIP, StickyDestPort, StickyUser, StickyInbound, StickyNone,
}

// Validate checks what the decoder and the building of a box do not (S1.2, S1.3, S1.6): the fields of balancers and of
// the monitor, that members exist, that no group contains itself. It starts nothing. The error is one line that names
// the outbound, the field, what was found and what is allowed; warnings are one line each.
func (o *Options) Validate() (warnings []string, err error) {
	if _, err = ResolveMonitoring(o.Monitoring, nil, false); err != nil {
		return nil, E.Cause(err, "experimental.monitoring")
	}
	nodes, servers := o.nodes(), o.tcpServers()
	for i, outbound := range o.Outbounds {
		balancer, isBalancer := outbound.Options.(*BalancerOutboundOptions)
		if !isBalancer {
			continue
		}
		tag := tagOr(outbound.Tag, i)
		name := outboundName(TypeBalancer, tag)
		if err = balancer.Validate(); err != nil {
			return nil, E.Cause(err, name)
		}
		members, err := ExpandMembers(nodes, tag, balancer.Outbounds, balancer.Include, balancer.Exclude)
		if err != nil {
			return nil, E.Cause(err, name)
		}
		if err = balancer.checkWeights(members.Tags); err != nil {
			return nil, E.Cause(err, name)
		}
		if err = o.checkTCPProbe(balancer, members.Tags, servers); err != nil {
			return nil, E.Cause(err, name)
		}
		// The next group's patterns see what this one's came to.
		nodes[i].LeadsTo = members.Tags
		for _, pattern := range members.Unmatched {
			warnings = append(warnings, F.ToString(name, ": ", pattern, " matches no outbound and no endpoint"))
		}
		if unused := balancer.unusedFields(); len(unused) > 0 {
			warnings = append(warnings, F.ToString(name, ": strategy ", balancer.strategy(), " does not use ", strings.Join(unused, ", ")))
		}
	}
	if err = o.checkMembers(nodes); err != nil {
		return nil, err
	}
	return warnings, checkCycles(nodes, o.detours())
}

// Validate checks the fields of one balancer by themselves.
func (o *BalancerOutboundOptions) Validate() error {
	if strategy := o.strategy(); !slices.Contains(Strategies, strategy) {
		return wrongWord("strategy", strategy, Strategies)
	}
	for _, word := range o.StickyHash {
		if !slices.Contains(stickyWords, word) {
			return wrongWord("sticky_hash", word, stickyWords)
		}
		if word == StickyNone && len(o.StickyHash) > 1 {
			return wrong("sticky_hash", quoted(o.StickyHash), `"none" alone, or other words without it`)
		}
	}
	// Comparisons are written so that a NaN fails them.
	if o.DelayAcceptableRatio != 0 && !(o.DelayAcceptableRatio >= 1) {
		return wrong("delay_acceptable_ratio", o.DelayAcceptableRatio, "a number of at least 1, or 0 for the default of 2")
	}
	for _, number := range []struct {
		field string
		value int
	}{{"pool", o.Pool}, {"max_retry", o.MaxRetry}, {"tolerance", valueOr(o.Tolerance, 0)}} {
		if number.value < 0 {
			return wrong(number.field, number.value, "a whole number of at least 0")
		}
	}
	if o.ToleranceRatio != nil && !(*o.ToleranceRatio >= 0) {
		return wrong("tolerance_ratio", *o.ToleranceRatio, "a number of at least 0")
	}
	if o.Smoothing != nil && !(*o.Smoothing > 0 && *o.Smoothing <= 1) {
		return wrong("smoothing", *o.Smoothing, "a number above 0 and at most 1")
	}
	for _, duration := range []struct {
		field string
		value time.Duration
	}{{"ttl", time.Duration(o.TTL)}, {"cooldown", time.Duration(valueOr(o.Cooldown, 0))}, {"slow_start", time.Duration(o.SlowStart)}} {
		if duration.value < 0 {
			return wrong(duration.field, duration.value, "a duration of at least 0")
		}
	}
	if o.Monitoring != nil {
		if err := o.Monitoring.validate(); err != nil {
			return E.Cause(err, "monitoring")
		}
	}
	if len(o.Outbounds) == 0 && len(o.Include) == 0 {
		return wrong("outbounds", "an empty list", "at least one member")
	}
	return nil
}

func valueOr[T any](value *T, otherwise T) T {
	if value == nil {
		return otherwise
	}
	return *value
}

func quoted(words []string) string {
	return "[" + strings.Join(common.Map(words, strconv.Quote), ", ") + "]"
}

func (o *BalancerOutboundOptions) strategy() string {
	if o.Strategy == "" {
		return StrategyRoundRobin
	}
	return o.Strategy
}

// StickyHashOrDefault are the words that apply (S1.1): none where the strategy does not go by them.
func (o *BalancerOutboundOptions) StickyHashOrDefault() []string {
	switch {
	case o.Strategy != StrategyPool && o.Strategy != StrategyStickySessions:
		return nil
	case len(o.StickyHash) > 0:
		return o.StickyHash
	case o.Strategy == StrategyPool:
		return []string{StickyProcess, StickyDomain}
	default:
		return []string{StickySourceIP, StickyDomain}
	}
}

// checkWeights checks that weights are given to members and are at least 1.
func (o *BalancerOutboundOptions) checkWeights(members []string) error {
	for tag, weight := range o.Weights {
		field := F.ToString("weights.", tag)
		if weight < 1 {
			return wrong(field, weight, "a whole number of at least 1")
		}
		if !slices.Contains(members, tag) {
			return wrong(field, "a tag that is not a member", strings.Join(members, ", "), didYouMean(tag, members))
		}
	}
	return nil
}

// checkTCPProbe checks that every member of a group that is tested by `probe: tcp` has a TCP endpoint (S7.5).
func (o *Options) checkTCPProbe(balancer *BalancerOutboundOptions, members []string, servers map[string]TCPServer) error {
	if !o.tcpProbed(balancer) {
		return nil
	}
	for i, outbound := range o.Outbounds {
		tag := tagOr(outbound.Tag, i)
		if _, has := servers[tag]; !has && slices.Contains(members, tag) {
			return noTCPEndpoint(tag, outbound.Type)
		}
	}
	for i, endpoint := range o.Endpoints {
		if tag := tagOr(endpoint.Tag, i); slices.Contains(members, tag) {
			return noTCPEndpoint(tag, endpoint.Type)
		}
	}
	return nil
}

func noTCPEndpoint(tag, kind string) error {
	return wrong("outbounds", F.ToString(strconv.Quote(tag), " (", kind, "), which has no TCP endpoint to probe"),
		"with probe: tcp, members with a server that accepts TCP connections")
}

// users of the fields that not every strategy uses.
var users = []struct {
	field      string
	written    func(o *BalancerOutboundOptions) bool
	strategies []string
}{
	{"pool", func(o *BalancerOutboundOptions) bool { return o.Pool != 0 }, []string{StrategyPool}},
	{"sticky_hash", func(o *BalancerOutboundOptions) bool { return len(o.StickyHash) > 0 }, []string{StrategyPool, StrategyStickySessions}},
	{"delay_acceptable_ratio", func(o *BalancerOutboundOptions) bool { return o.DelayAcceptableRatio != 0 },
		[]string{StrategyRoundRobin, StrategyConsistentHashing, StrategyStickySessions, StrategyLeastConnections}},
	{"max_retry", func(o *BalancerOutboundOptions) bool { return o.MaxRetry != 0 }, []string{StrategyConsistentHashing, StrategyStickySessions}},
	{"ttl", func(o *BalancerOutboundOptions) bool { return o.TTL != 0 }, []string{StrategyStickySessions}},
	{"tolerance", func(o *BalancerOutboundOptions) bool { return o.Tolerance != nil }, []string{StrategyLowestDelay, StrategyPool}},
	{"tolerance_ratio", func(o *BalancerOutboundOptions) bool { return o.ToleranceRatio != nil }, []string{StrategyLowestDelay, StrategyPool}},
	{"cooldown", func(o *BalancerOutboundOptions) bool { return o.Cooldown != nil }, []string{StrategyLowestDelay, StrategyPool}},
	{"weights", func(o *BalancerOutboundOptions) bool { return len(o.Weights) > 0 },
		[]string{StrategyRoundRobin, StrategyConsistentHashing, StrategyLeastConnections}},
	{"slow_start", func(o *BalancerOutboundOptions) bool { return o.SlowStart != 0 }, []string{StrategyRoundRobin, StrategyLeastConnections}},
}

// unusedFields are those that are written and that the strategy does not use (S1.2).
func (o *BalancerOutboundOptions) unusedFields() (fields []string) {
	for _, it := range users {
		if it.written(o) && !slices.Contains(it.strategies, o.strategy()) {
			fields = append(fields, it.field)
		}
	}
	return fields
}

// nodes are all outbounds, then all endpoints, with the named members of groups.
func (o *Options) nodes() []Node {
	nodes := make([]Node, 0, len(o.Outbounds)+len(o.Endpoints))
	for i, outbound := range o.Outbounds {
		nodes = append(nodes, Node{Tag: tagOr(outbound.Tag, i), LeadsTo: namedMembers(outbound)})
	}
	for i, endpoint := range o.Endpoints {
		nodes = append(nodes, Node{Tag: tagOr(endpoint.Tag, i)})
	}
	return nodes
}

func namedMembers(outbound box.Outbound) []string {
	switch options := outbound.Options.(type) {
	case *box.SelectorOutboundOptions:
		return options.Outbounds
	case *box.URLTestOutboundOptions:
		return options.Outbounds
	case *BalancerOutboundOptions:
		return options.Outbounds
	default:
		return nil
	}
}

// detours are the outbounds by which others are dialled, by tag.
func (o *Options) detours() map[string]string {
	detours := make(map[string]string)
	add := func(tag string, options any) {
		if dialer, isDialer := options.(box.DialerOptionsWrapper); isDialer {
			if detour := dialer.TakeDialerOptions().Detour; detour != "" {
				detours[tag] = detour
			}
		}
	}
	for i, outbound := range o.Outbounds {
		add(tagOr(outbound.Tag, i), outbound.Options)
	}
	for i, endpoint := range o.Endpoints {
		add(tagOr(endpoint.Tag, i), endpoint.Options)
	}
	return detours
}

// checkMembers checks that every member of every group exists (S1.2).
func (o *Options) checkMembers(nodes []Node) error {
	tags := make([]string, len(nodes))
	known := make(map[string]bool, len(nodes))
	for i, node := range nodes {
		tags[i] = node.Tag
		known[node.Tag] = true
	}
	for i, node := range nodes {
		for _, member := range node.LeadsTo {
			if !known[member] {
				others := slices.DeleteFunc(slices.Clone(tags), func(tag string) bool { return tag == node.Tag })
				return E.Cause(wrong("outbounds", strconv.Quote(member), "the tag of an outbound or endpoint: ", some(others), didYouMean(member, others)),
					outboundName(o.Outbounds[i].Type, node.Tag))
			}
		}
	}
	return nil
}

// some lists words, but not hundreds.
func some(words []string) string {
	const most = 12
	if len(words) <= most {
		return strings.Join(words, ", ")
	}
	return F.ToString(strings.Join(words[:most], ", "), " and ", len(words)-most, " more")
}

// checkCycles checks that no group contains itself at any depth, also not by way of a detour, and prints the way.
func checkCycles(nodes []Node, detours map[string]string) error {
	next := make(map[string][]string, len(nodes))
	for _, node := range nodes {
		next[node.Tag] = node.LeadsTo
		if detour := detours[node.Tag]; detour != "" {
			next[node.Tag] = append(slices.Clone(node.LeadsTo), detour)
		}
	}
	done := make(map[string]bool, len(nodes))
	var way []string
	var visit func(tag string) error
	visit = func(tag string) error {
		if start := slices.Index(way, tag); start != -1 {
			return E.New("outbounds: found the cycle ", strings.Join(append(way[start:], tag), " → "), "; allowed: groups and detours that do not lead back to themselves")
		}
		if done[tag] {
			return nil
		}
		way = append(way, tag)
		for _, target := range next[tag] {
			if err := visit(target); err != nil {
				return err
			}
		}
		way = way[:len(way)-1]
		done[tag] = true
		return nil
	}
	for _, node := range nodes {
		if err := visit(node.Tag); err != nil {
			return err
		}
	}
	return nil
}
