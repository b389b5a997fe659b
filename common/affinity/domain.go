package affinity

import (
	"net/netip"
	"strings"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"
)

// lookup converts names as browsers do when they look one up: case, width and composition are mapped, and `ß` stays
// itself. It accepts what is in use although the rules forbid it, such as underscores and two hyphens in a row.
var lookup = idna.New(
	idna.MapForLookup(),
	idna.Transitional(false),
	idna.StrictDomainName(false),
	idna.CheckHyphens(false),
)

// Domain returns the site that a host name belongs to: its registrable domain, in lower case, without a trailing dot
// and with international names in their ASCII form (S4.2).
//
// The private section of the public suffix list counts: a.github.io and b.github.io have different owners, logins and
// cookies, so they are different sites, as they are to a browser. A name without a registrable domain is its own site:
// `localhost`, a bare suffix such as co.uk or github.io, and a name with an empty label. So is a name that has no ASCII
// form. An address is its own site, in the form that Address gives it.
func Domain(host string) string {
	found := siteOf(host)
	if found.address.IsValid() {
		return found.address.String()
	}
	return found.domain
}

// Address returns an address in the one form that keys use: an IPv4-mapped IPv6 address is the IPv4 address, and the
// zone, which means something on this machine only, is dropped.
func Address(address netip.Addr) netip.Addr {
	return address.Unmap().WithZone("")
}

// site is what a host name stands for: a domain, or else an address, as sniffed from an HTTP request for a plain
// address.
type site struct {
	domain  string
	address netip.Addr
}

func resolve(host string) site {
	name, err := asciiOf(strings.TrimRight(host, "."))
	if err != nil {
		return site{domain: name}
	}
	if looksLikeAddress(name) {
		if address, err := netip.ParseAddr(name); err == nil {
			return site{address: Address(address)}
		}
	}
	if registrable, err := publicsuffix.EffectiveTLDPlusOne(name); err == nil {
		return site{domain: registrable}
	}
	return site{domain: name}
}

// asciiOf returns the name in the form in which a DNS server is asked for it. With an error it is the name in lower
// case, to which nothing more can be done.
func asciiOf(host string) (string, error) {
	if isASCII(host) {
		return strings.ToLower(host), nil
	}
	// lookup lets some invalid bytes pass, but never the character that stands for them.
	host = strings.ToValidUTF8(host, "\uFFFD")
	name, err := lookup.ToASCII(host)
	if err != nil {
		// A few letters are only known in their lower case.
		host = strings.ToLower(host)
		if name, err = lookup.ToASCII(host); err != nil {
			return host, err
		}
	}
	// The ideographic full stop is a dot only now.
	return strings.TrimRight(name, "."), nil
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// looksLikeAddress tells the few names that may be addresses apart from all others, for which trying is a waste.
func looksLikeAddress(name string) bool {
	if name == "" {
		return false
	}
	last := name[len(name)-1]
	return '0' <= last && last <= '9' || strings.IndexByte(name, ':') >= 0
}
