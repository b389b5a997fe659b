package affinity

import (
	"net/netip"
	"testing"
)

// TestKey_S4_5_Golden pins keys. The figures come from another program in another language, with its own XXH64, given the
// parts that a person read off the rules. They must be the same on every machine and in every later version: whoever has
// to change them moves every user's sites to other members.
func TestKey_S4_5_Golden(t *testing.T) {
	all := []string{"process", "domain", "source_ip", "dest_ip", "dest_port", "user", "inbound"}
	for _, it := range []struct {
		sticky     []string
		connection Connection
		key        uint64
	}{
		{nil, Connection{Domain: "www.example.com"}, 0x4322c302ed10b5c3},
		{[]string{"domain"}, Connection{Domain: "Example.COM."}, 0x4322c302ed10b5c3},
		{nil, Connection{Domain: "a.b.co.uk"}, 0x7e419cb00e5945b1},
		{nil, Connection{Domain: "bücher.example"}, 0x24e37b808f63c3ee},
		{nil, Connection{Domain: "www.xn--bcher-kva.example"}, 0x24e37b808f63c3ee},
		{nil, Connection{Domain: "localhost"}, 0xeb9725b39499d392},
		{nil, Connection{Destination: netip.MustParseAddr("198.51.100.1")}, 0xc55027604ab59d64},
		{[]string{"dest_ip"}, Connection{Destination: netip.MustParseAddr("::ffff:198.51.100.1")}, 0xc55027604ab59d64},
		{nil, Connection{Destination: netip.MustParseAddr("2001:db8::7%eth0")}, 0x071cb0ec5e489c7c},
		{all, full, 0x4f42f486d85b92b1},
	} {
		if key := compile(t, it.sticky...).Key(it.connection); key != it.key {
			t.Errorf("%v of %+v: key %#016x, not %#016x", it.sticky, it.connection, key, it.key)
		}
	}
}
