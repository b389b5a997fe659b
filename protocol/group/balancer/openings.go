package balancer

import (
	"net/netip"
	"slices"
	"unsafe"

	"github.com/sagernet/sing-box/adapter"
	"github.com/sagernet/sing/common"
	"github.com/sagernet/sing/contrab/freelru"
)

// openings remembers the choice for connections that sing-box opens address by address, one call each, so that the
// choice is made once per connection (S5.1). Only a call that belongs to such a loop comes here.
type openings struct {
	chosen *freelru.Cache[opening, int]
}

// opening identifies a connection: sing-box keeps one metadata object for all of a connection's calls.
type opening struct {
	metadata *adapter.InboundContext
	network  network
}

// maxOpenings bounds the memory of loops that were given up half way.
const maxOpenings = 1024

func newOpenings() *openings {
	return &openings{chosen: common.Must1(freelru.New[opening, int](maxOpenings, opening.hash, true))}
}

func (o opening) hash() uint32 {
	const golden = 0x9E3779B97F4A7C15
	return uint32((uint64(uintptr(unsafe.Pointer(o.metadata))) + uint64(o.network)) * golden >> 32)
}

// loop is a call's place in the opening of a connection address by address.
type loop struct {
	opening     opening
	first, last bool
}

// loopOver returns the loop that a call belongs to, if it belongs to one.
func loopOver(metadata *adapter.InboundContext, network network, address netip.Addr) (loop, bool) {
	if metadata == nil || len(metadata.DestinationAddresses) < 2 {
		return loop{}, false
	}
	position := slices.Index(metadata.DestinationAddresses, address)
	if position == -1 {
		return loop{}, false
	}
	return loop{opening{metadata, network}, position == 0, position == len(metadata.DestinationAddresses)-1}, true
}

// finish forgets the choice when the loop is over.
func (l loop) finish(openings *openings, opened bool) {
	if opened || l.last {
		openings.chosen.Remove(l.opening)
	}
}
