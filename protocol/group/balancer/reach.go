package balancer

import (
	"tarazu/adapter"
	"tarazu/option"

	box "github.com/sagernet/sing-box/adapter"
)

// reach knows what each member leads to: itself, or for a group what that has chosen now. It belongs to the group's
// goroutine.
type reach struct {
	outbound *Outbound
	leaf     []string         // per member, the tag whose results count
	nested   []int            // members that are groups
	members  map[string][]int // by leaf
}

func newReach(outbound *Outbound) *reach {
	r := &reach{outbound: outbound, leaf: make([]string, len(outbound.members))}
	for i := range outbound.members {
		r.leaf[i] = leafTag(outbound.outbounds, outbound.members[i].Outbound)
		if _, isGroup := outbound.members[i].Outbound.(box.OutboundGroup); isGroup {
			r.nested = append(r.nested, i)
		}
	}
	r.index()
	return r
}

func (r *reach) index() {
	r.members = make(map[string][]int, len(r.leaf))
	for i, leaf := range r.leaf {
		r.members[leaf] = append(r.members[leaf], i)
	}
}

// translate appends what happened to members, by what the monitor tells.
func (r *reach) translate(events []event, told adapter.Event) []event {
	if told.Kind == adapter.EventResult && told.Failed {
		r.settle(told.Tag)
	}
	events = r.moved(events)
	switch told.Kind {
	case adapter.EventStarted:
		return append(events, event{kind: eventStarted})
	case adapter.EventRoundStart:
		return append(events, event{kind: eventRoundStart, held: told.Held})
	case adapter.EventRoundEnd:
		return append(events, event{kind: eventRoundEnd, answered: told.Answered})
	case adapter.EventResult, adapter.EventRetest:
		return appendMembers(events, told, r.members[told.Tag])
	}
	return events
}

// settle has the balancers that lead to an outbound that failed choose anew first: what they lead to then is what counts,
// and a member of theirs that died is theirs to deal with.
func (r *reach) settle(leaf string) {
	for _, index := range r.members[leaf] {
		if inner := innerBalancer(r.outbound.outbounds, r.outbound.members[index].Outbound); inner != nil {
			inner.group.settle()
		}
	}
}

// innerBalancer follows groups to the first balancer that a member leads to now; nil where it leads to none.
func innerBalancer(outbounds box.OutboundManager, detour box.Outbound) *Outbound {
	for detour != nil {
		if inner, isBalancer := detour.(*Outbound); isBalancer {
			return inner
		}
		group, isGroup := detour.(box.OutboundGroup)
		if !isGroup {
			break
		}
		detour, _ = outbounds.Outbound(group.Now())
	}
	return nil
}

// appendMembers appends what a test of members says of each.
func appendMembers(events []event, told adapter.Event, members []int) []event {
	kind := eventResult
	switch {
	case told.Kind == adapter.EventRetest && told.Ended:
		kind = eventCleared
	case told.Kind == adapter.EventRetest:
		kind = eventSuspect
	}
	for _, index := range members {
		events = append(events, event{kind: kind, member: index, result: told.Result, failed: told.Failed, round: told.Round})
	}
	return events
}

// moved looks where nested groups lead now.
func (r *reach) moved(events []event) []event {
	moved := false
	for _, index := range r.nested {
		detour := r.outbound.members[index].Outbound
		if leaf := leafTag(r.outbound.outbounds, detour); leaf != r.leaf[index] {
			moved = true
			r.leaf[index] = leaf
			events = append(events, event{
				kind: eventMoved, member: index, udp: carriesUDP(detour), result: r.outbound.monitor.Result(leaf),
			})
		}
	}
	if moved {
		r.index()
	}
	return events
}

// leafTag follows groups to the outbound that they lead to now.
func leafTag(outbounds box.OutboundManager, detour box.Outbound) string {
	for {
		group, isGroup := detour.(box.OutboundGroup)
		if !isGroup {
			return detour.Tag()
		}
		next, loaded := outbounds.Outbound(group.Now())
		if !loaded {
			return group.Now()
		}
		detour = next
	}
}

// resolveMembers adds what `include` and `exclude` say, once, when everything is built (S1.6).
func (o *Outbound) resolveMembers() error {
	if len(o.options.Include) == 0 && len(o.options.Exclude) == 0 {
		return nil
	}
	var nodes []option.Node
	for _, it := range o.outbounds.Outbounds() {
		nodes = append(nodes, option.Node{Tag: it.Tag(), LeadsTo: it.Dependencies()})
	}
	for _, it := range o.endpoints.Endpoints() {
		nodes = append(nodes, option.Node{Tag: it.Tag(), LeadsTo: it.Dependencies()})
	}
	expanded, err := option.ExpandMembers(nodes, o.Tag(), o.options.Outbounds, o.options.Include, o.options.Exclude)
	if err != nil {
		return err
	}
	o.tags = expanded.Tags
	return nil
}
