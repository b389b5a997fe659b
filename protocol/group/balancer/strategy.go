package balancer

import (
	"time"

	"tarazu/adapter"
	"tarazu/option"
)

// strategy is the policy of a group on one network. It is a value without state of its own: what it has to remember
// it returns as memory and gets back at the next decision, so that a simulator can run it in virtual time.
type strategy interface {
	// choose decides from what is known now. It does no I/O and reads no clock.
	choose(view view, previous memory) choice
}

// memory is what a strategy remembers from one decision to the next; nil at the first.
type memory any

// picker gives each connection its member. It is read by all connections at once, takes no lock and allocates nothing;
// what sticky-sessions remembers is the exception.
type picker interface {
	// pick returns the index of a member of the group, for a connection with this key; strategies that do not go by
	// keys do not look at it.
	pick(key uint64) int
}

// choice is a strategy's decision.
type choice struct {
	picker picker
	memory memory
	// selected is the one member that gets everything, or noMember where the strategy spreads connections.
	selected int
	// uses reports whether the group sends connections to a member (S6.1b); nil where that is all that are alive.
	uses func(member int) bool
	// rule says, where selected changed, by what.
	rule string
	// reserves says that the picker counts a connection in its member's load when it picks.
	reserves bool
	// wake is when the decision has to be made again although nothing arrives; zero for never.
	wake time.Time
}

const noMember = -1

// cause is what a decision is made for.
type cause uint8

const (
	causeEvent    cause = iota // results or the like arrived
	causeRoundEnd              // a round ended: the choice is made with all its results (S7.1)
	causeTick                  // nothing arrived, a time came (S3.6)
)

// view is what a strategy may look at: the members that one network considers (S3.3), in list order, at one moment.
type view struct {
	now     time.Time
	cause   cause
	udp     bool
	round   bool      // a round is in progress
	held    bool      // and groups keep their choice during it (S7.1)
	wake    time.Time // when a member's weight changes by itself; zero for never
	members []candidate
	// position is where each member of the group stands in members, or -1 where this network does not consider it.
	position []int32
}

// candidate is one member in a view.
type candidate struct {
	index   int // in the group's list
	weight  int // in tenths of what is configured, so that slow_start can give less
	state   adapter.State
	delay   uint16 // S3.1
	alive   bool   // S3.2
	tested  bool   // has a result from the round in progress
	suspect bool   // is being tested because a dial failed (S5.3)
}

// fresh reports a success of this run.
func (c candidate) fresh() bool {
	return c.state == adapter.StateUp
}

// answered reports that the last test known of the member succeeded, in this run or in one before.
func (c candidate) answered() bool {
	return c.state == adapter.StateUp || c.state == adapter.StateCached
}

// find returns the candidate with a member's index, or false where this network does not consider it.
func (v view) find(index int) (candidate, bool) {
	if position := v.position[index]; position >= 0 {
		return v.members[position], true
	}
	return candidate{}, false
}

// alive reports whether this network considers a member alive (S3.2).
func (v view) alive(index int) bool {
	member, considered := v.find(index)
	return considered && member.alive
}

// answered reports whether a member that this network considers last answered.
func (v view) answered(index int) bool {
	member, _ := v.find(index)
	return member.answered()
}

// setting is what a strategy is made for.
type setting struct {
	options option.BalancerOutboundOptions
	// tag of the group, which salts its hashes.
	tag     string
	members []member
	// loads count the open connections of each member.
	loads []load
	// random returns a number from 0 to below n.
	random func(n int) int
}

// strategies is the table of names (S1.1). A new strategy is its own file and one line here.
var strategies = map[string]func(setting setting) strategy{
	option.StrategyRoundRobin:        newRoundRobin,
	option.StrategyLowestDelay:       newLowestDelay,
	option.StrategyConsistentHashing: newConsistentHashing,
	option.StrategyStickySessions:    newStickySessions,
	option.StrategyPool:              newPool,
	option.StrategyFailover:          newFailover,
	option.StrategyLeastConnections:  newLeastConnections,
}

// newStrategy makes the strategy that the options name, which are valid; an empty name is round-robin.
func newStrategy(setting setting) strategy {
	name := setting.options.Strategy
	if name == "" {
		name = option.StrategyRoundRobin
	}
	return strategies[name](setting)
}
