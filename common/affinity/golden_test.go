package affinity

import (
	"net/netip"
	"testing"
)

// TestGolden pins a few keys. The figures come from another program in another language with its own XXH64. They must
// be the same on every machine and in every later version: whoever has to change them moves every user's sites to other
// members.
func TestGolden_S4_2_SameOnEveryMachine(t *testing.T) {
	everything := []string{"process", "domain", "source_ip", "dest_ip", "dest_port", "user", "inbound"}
	for _, it := range []struct {
		name   string
		sticky []string
		c      Connection
		key    uint64
	}{
		{"a site", nil, full, 0x4322c302ed10b5c3},
		{"an international site", nil, Connection{Domain: "www.bücher.de"}, 0x49d013c014c6bb00},
		{"an IPv4 address", nil, Connection{Destination: full.Destination}, 0xc55027604ab59d64},
		{"an IPv6 address", nil, Connection{Destination: netip.MustParseAddr("2001:db8::1")}, 0x3bd42d58edaa5e7f},
		{"the pool's default", []string{"process", "domain"}, full, 0x2375ae5bbf9b164b},
		{"a Windows program", []string{"process", "domain"}, with(func(c *Connection) { c.Process = `C:\Program Files/App.EXE` }), 0xb01f96c9be5c0b3d},
		{"the default of sticky sessions", []string{"source_ip", "domain"}, full, 0xa8b4ed82e6e8c48f},
		{"all parts", everything, full, 0x4f42f486d85b92b1},
		{"nothing", everything, Connection{}, 0xef46db3751d8e999},
	} {
		if key := compile(t, it.sticky...).Key(it.c); key != it.key {
			t.Errorf("%s: key %#016x, want %#016x", it.name, key, it.key)
		}
	}
}
