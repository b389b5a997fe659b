package affinity

import (
	"net/netip"
	"strings"
	"testing"
)

func FuzzKey(f *testing.F) {
	for _, host := range []string{
		"", ".", "..", "www.example.com.", "WWW.EXAMPLE.COM", "a.b.co.uk", "localhost", "github.io", "192.0.2.1",
		"::ffff:192.0.2.1", "fe80::1%eth0", "www.bücher.de", "XN--BCHER-KVA.de", "xn--0.de", "www。bücher。de。", "İ.com",
		"Ⅎ.com", "B\xff.com", "\uFFFD", "１９２.０.２.１", "a…b.com", "\u200d.com", ".com", "a..b", "xn--.com", "ｘn--a.de",
	} {
		f.Add(host, "/usr/bin/app", "alice", uint16(443), []byte{192, 0, 2, 1}, uint8(0x7f))
	}
	f.Add("example.com", `C:\Program Files\App.exe`, "", uint16(0), []byte{}, uint8(domain|process))
	f.Add("", "C:/\xff", "\x00", uint16(1), make([]byte, 16), uint8(process|user))

	f.Fuzz(func(t *testing.T, host, program, name string, port uint16, address []byte, parts uint8) {
		site := Domain(host)
		if again := Domain(site); again != site {
			t.Errorf("%q: %q, and that gives %q", host, site, again)
		}
		if dotted := Domain(host + "."); dotted != site {
			t.Errorf("%q: %q, with a dot %q", host, site, dotted)
		}
		if isASCII(host) && Domain(strings.ToUpper(host)) != site {
			t.Errorf("%q: %q, in capitals %q", host, site, Domain(strings.ToUpper(host)))
		}
		if fresh := resolve(host); fresh != siteOf(host) {
			t.Errorf("%q: %+v is remembered as %+v", host, fresh, siteOf(host))
		}

		ip, _ := netip.AddrFromSlice(address)
		c := Connection{Process: program, Domain: host, User: name, Source: ip, Destination: ip, DestinationPort: port}
		s := Selector(parts)
		key := s.Key(c)
		if s.Key(c) != key {
			t.Errorf("%+v has two keys", c)
		}
		c.Domain, c.Source, c.Destination = site, Address(ip), Address(ip)
		if s.Key(c) != key {
			t.Errorf("%+v with host %q has another key than in its normal form", c, host)
		}
		if site != "" && DestinationKey(Connection{Domain: host}) != DestinationKey(Connection{Domain: site}) {
			t.Errorf("%q and its site %q have different keys", host, site)
		}
	})
}
