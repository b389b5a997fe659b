package affinity

import (
	"net/netip"
	"testing"

	"tarazu/option"
)

var full = Connection{
	Process:         "/usr/bin/firefox",
	Domain:          "www.example.com",
	User:            "alice",
	Inbound:         "tun-in",
	Source:          netip.MustParseAddr("192.0.2.7"),
	Destination:     netip.MustParseAddr("198.51.100.1"),
	DestinationPort: 443,
}

// with returns the full connection after a change.
func with(change func(c *Connection)) Connection {
	c := full
	change(&c)
	return c
}

func compile(t *testing.T, sticky ...string) Selector {
	t.Helper()
	s, err := Compile(sticky)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The changes that a part's key must follow, by the part's word.
var changes = map[string]func(c *Connection){
	option.StickyProcess:  func(c *Connection) { c.Process = "/usr/bin/curl" },
	option.StickyDomain:   func(c *Connection) { c.Domain = "example.org" },
	option.StickySourceIP: func(c *Connection) { c.Source = c.Source.Next() },
	option.StickyDestIP:   func(c *Connection) { c.Destination = c.Destination.Next() },
	option.StickyDestPort: func(c *Connection) { c.DestinationPort = 80 },
	option.StickyUser:     func(c *Connection) { c.User = "bob" },
	option.StickyInbound:  func(c *Connection) { c.Inbound = "mixed-in" },
}

func TestKey_S4_5_FollowsItsPartAlone(t *testing.T) {
	for word := range changes {
		s := compile(t, word)
		for changed, change := range changes {
			moved := s.Key(with(change)) != s.Key(full)
			if moved != (changed == word) {
				t.Errorf("sticky on %s, another %s: the key changes: %v", word, changed, moved)
			}
		}
	}
}

func TestKey_S4_5_SameKey(t *testing.T) {
	noDomain := with(func(c *Connection) { c.Domain = "" })
	onlyDomain := Connection{Domain: "www.example.com"}
	onlyAddress := Connection{Destination: full.Destination}
	for _, it := range []struct {
		name   string
		sticky []string
		a, b   Connection
		same   bool
	}{
		{"domain: hosts of one site", []string{"domain"}, full, with(func(c *Connection) { c.Domain = "API.Example.Com." }), true},
		{"domain: falls back to the address", []string{"domain"}, noDomain, with(func(c *Connection) {
			c.Domain = ""
			c.Destination = netip.MustParseAddr("::ffff:198.51.100.1")
		}), true},
		{"domain: falls back to another address", []string{"domain"}, noDomain, with(func(c *Connection) {
			c.Domain = ""
			c.Destination = c.Destination.Next()
		}), false},
		{"domain: an address for a host is none", []string{"domain"}, noDomain, with(func(c *Connection) { c.Domain = "203.0.113.9" }), true},
		{"domain: an address for a host, and no other", []string{"domain"}, onlyAddress, Connection{Domain: "198.51.100.1"}, true},
		{"dest_ip: an address for a host, and no other", []string{"dest_ip"}, onlyAddress, Connection{Domain: "198.51.100.1"}, true},
		{"domain: four letters are no IPv4 address", []string{"domain"}, Connection{Domain: "abcd"}, Connection{Destination: netip.AddrFrom4([4]byte([]byte("abcd")))}, false},
		{"process: left out when not found", []string{"process", "domain"}, onlyDomain, with(func(c *Connection) { c.Process = "" }), true},
		{"process: found or not differ", []string{"process", "domain"}, full, with(func(c *Connection) { c.Process = "" }), false},
		{"source_ip: mapped", []string{"source_ip"}, full, with(func(c *Connection) { c.Source = netip.MustParseAddr("::ffff:192.0.2.7") }), true},
		{"source_ip: zone", []string{"source_ip"}, Connection{Source: netip.MustParseAddr("fe80::1%eth0")}, Connection{Source: netip.MustParseAddr("fe80::1%wlan0")}, true},
		{"user: missing, the destination is the key", []string{"user"}, onlyDomain, Connection{Domain: "cdn.example.com"}, true},
		{"user: missing, another destination", []string{"user"}, onlyDomain, Connection{Domain: "example.org"}, false},
		{"dest_ip: not known, the host is the key", []string{"dest_ip"}, onlyDomain, Connection{Domain: "example.org"}, false},
		{"framing: parts do not run together", []string{"user", "inbound"}, Connection{User: "ab", Inbound: "c"}, Connection{User: "a", Inbound: "bc"}, false},
		{"framing: a part is not another of its name", []string{"user", "inbound"}, Connection{User: "x"}, Connection{Inbound: "x"}, false},
		{"framing: source and destination", []string{"source_ip", "dest_ip"}, Connection{Source: full.Source}, Connection{Destination: full.Source}, false},
	} {
		t.Run(it.name, func(t *testing.T) {
			s := compile(t, it.sticky...)
			if a, b := s.Key(it.a), s.Key(it.b); (a == b) != it.same {
				t.Errorf("same key is %v, want %v", a == b, it.same)
			}
		})
	}
}

func TestKey_S4_5_WithoutAnyPartItIsTheDestination(t *testing.T) {
	for _, c := range []Connection{{Domain: "www.example.com"}, {Destination: full.Destination}, {}} {
		for _, sticky := range [][]string{{"process"}, {"user", "inbound"}, {"source_ip", "dest_port"}, {"domain"}, {"none"}, nil} {
			if compile(t, sticky...).Key(c) != DestinationKey(c) {
				t.Errorf("%v, %+v: the destination is not the key", sticky, c)
			}
		}
	}
}

func TestDestinationKey_S4_2_SameSiteSameKey(t *testing.T) {
	key := DestinationKey(full)
	for name, c := range map[string]Connection{
		"case":             {Domain: "WWW.EXAMPLE.COM"},
		"trailing dot":     {Domain: "www.example.com."},
		"another host":     {Domain: "example.com"},
		"port":             with(func(c *Connection) { c.DestinationPort = 80 }),
		"resolved address": with(changes[option.StickyDestIP]),
		"process":          with(changes[option.StickyProcess]),
	} {
		if DestinationKey(c) != key {
			t.Errorf("%s: another key", name)
		}
	}
	if DestinationKey(with(changes[option.StickyDomain])) == key {
		t.Error("another site has the same key")
	}
	if DestinationKey(Connection{Destination: netip.MustParseAddr("::ffff:198.51.100.1")}) != DestinationKey(Connection{Destination: full.Destination}) {
		t.Error("an IPv4-mapped address has another key than the IPv4 address")
	}
}

func TestCompile_S4_5_Words(t *testing.T) {
	if compile(t, "process", "domain") != compile(t, "domain", "process", "domain") {
		t.Error("the order of the words matters")
	}
	for _, wrong := range [][]string{{"Domain"}, {"ip"}, {""}, {"none", "domain"}} {
		if _, err := Compile(wrong); err == nil {
			t.Errorf("%q: no error", wrong)
		}
	}
}
