// Package affinity tells what a connection sticks on (SPEC S4.2 to S4.5): it turns the facts of a connection into a key,
// which the hashing strategies then give a member.
//
// Keys are the same on every machine and after every restart. They spread, they do not hide: who knows the names that
// people may visit can tell a name from its key, so a key is as private as the name (S9.5).
package affinity

import (
	"fmt"
	"net/netip"
	"slices"

	"tarazu/option"
)

// Connection is what is known of a connection when it opens. A fact that is not known is the zero value; an empty text
// is no fact.
type Connection struct {
	// Process is the package on Android, else the path of the executable; see ProcessOf.
	Process string
	// Domain is the host name that the client asked for or that was sniffed, as it came.
	Domain string
	// User is the inbound's user.
	User string
	// Inbound is the inbound's tag.
	Inbound string

	Source          netip.Addr
	Destination     netip.Addr
	DestinationPort uint16
}

// Selector is a compiled `sticky_hash`: the set of parts that make up the key. The order in which they were named, and
// how often, does not matter. The zero value names no part.
type Selector uint8

const (
	process Selector = 1 << iota
	domain
	sourceIP
	destIP
	destPort
	user
	inbound
)

var words = map[string]Selector{
	option.StickyProcess:  process,
	option.StickyDomain:   domain,
	option.StickySourceIP: sourceIP,
	option.StickyDestIP:   destIP,
	option.StickyDestPort: destPort,
	option.StickyUser:     user,
	option.StickyInbound:  inbound,
}

// Compile reads the words of `sticky_hash`. `none` alone, and no word at all, give the zero Selector.
func Compile(sticky []string) (Selector, error) {
	if slices.Equal(sticky, []string{option.StickyNone}) {
		return 0, nil
	}
	var s Selector
	for _, word := range sticky {
		part, found := words[word]
		if !found {
			return 0, fmt.Errorf("no part of a connection: %q", word)
		}
		s |= part
	}
	return s, nil
}

// Key returns the key of a connection: the hash of the parts that the Selector names. Parts that the connection does
// not have are left out; without any of them the key is DestinationKey (S4.5).
func (s Selector) Key(c Connection) uint64 {
	f := newFramer()
	if s&process != 0 {
		f.process(c.Process)
	}
	if s&domain != 0 {
		f.destination(c)
	}
	if s&sourceIP != 0 {
		f.address(frameSource, c.Source)
	}
	if s&destIP != 0 {
		f.address(frameDestination, destinationOf(c, siteOf(c.Domain)))
	}
	if s&destPort != 0 {
		f.port(c.DestinationPort)
	}
	if s&user != 0 {
		f.text(frameUser, c.User)
	}
	if s&inbound != 0 {
		f.text(frameInbound, c.Inbound)
	}
	if f.frames == 0 {
		return DestinationKey(c)
	}
	return f.sum()
}

// DestinationKey returns the key for consistent hashing (S4.2): the site of the destination's host name, or else its
// address. It is also the key that a Selector of `domain` alone gives.
func DestinationKey(c Connection) uint64 {
	f := newFramer()
	f.destination(c)
	return f.sum()
}
