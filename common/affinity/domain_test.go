package affinity

import (
	"net/netip"
	"strings"
	"testing"
)

func TestDomain_S4_2_Site(t *testing.T) {
	for _, it := range []struct{ name, host, want string }{
		{"registrable", "www.example.com", "example.com"},
		{"already registrable", "example.com", "example.com"},
		{"deep", "a.b.c.d.example.com", "example.com"},
		{"suffix of two labels", "a.b.co.uk", "b.co.uk"},
		{"suffix by wildcard", "x.y.z.kawasaki.jp", "y.z.kawasaki.jp"},
		{"exception to a wildcard", "x.city.kawasaki.jp", "city.kawasaki.jp"},
		{"unlisted suffix", "nas.home.lan", "home.lan"},

		{"case", "WWW.Example.COM", "example.com"},
		{"trailing dot", "www.example.com.", "example.com"},
		{"trailing dots", "www.example.com..", "example.com"},

		{"private suffix: an owner", "www.a.github.io", "a.github.io"},
		{"private suffix: another owner", "b.github.io", "b.github.io"},
		{"private suffix of several labels", "bucket.s3.amazonaws.com", "bucket.s3.amazonaws.com"},

		{"single label", "localhost", "localhost"},
		{"single label with a dot", "LOCALHOST.", "localhost"},
		{"bare suffix", "co.uk", "co.uk"},
		{"bare private suffix", "github.io", "github.io"},
		{"bare top level", "com", "com"},
		{"leading dot", ".example.com", ".example.com"},
		{"empty label", "www..example.com", "www..example.com"},
		{"empty", "", ""},
		{"root", ".", ""},

		{"underscore", "_dmarc.mail.example.com", "example.com"},
		{"hyphens at odd places", "r3---sn-4g5e.googlevideo.com", "googlevideo.com"},
		{"too long for DNS", strings.Repeat("a.", 200) + "example.com", "example.com"},

		{"an IPv4 address", "192.0.2.1", "192.0.2.1"},
		{"an IPv6 address", "2001:DB8:0::1", "2001:db8::1"},
		{"an IPv4-mapped address", "::ffff:192.0.2.1", "192.0.2.1"},
		{"a zone", "fe80::1%eth0", "fe80::1"},
		{"ends in a digit and is no address", "www.example.c0m1", "example.c0m1"},
		{"an address with a number too many", "1.192.0.2.1", "2.1"},
	} {
		t.Run(it.name, func(t *testing.T) {
			for _, time := range []string{"first", "second"} {
				if got := Domain(it.host); got != it.want {
					t.Errorf("%s time, %q: %q, want %q", time, it.host, got, it.want)
				}
			}
		})
	}
}

func TestDomain_S4_2_InternationalNames(t *testing.T) {
	for _, it := range []struct{ name, host, want string }{
		{"Unicode", "www.bücher.de", "xn--bcher-kva.de"},
		{"punycode", "www.xn--bcher-kva.de", "xn--bcher-kva.de"},
		{"punycode in capitals", "WWW.XN--BCHER-KVA.DE", "xn--bcher-kva.de"},
		{"capitals", "WWW.BÜCHER.DE", "xn--bcher-kva.de"},
		{"decomposed", "www.bu\u0308cher.de", "xn--bcher-kva.de"},
		{"full width", "ｗｗｗ．ｅｘａｍｐｌｅ．ｃｏｍ", "example.com"},
		{"ideographic full stops", "www。bücher。de。", "xn--bcher-kva.de"},
		{"international suffix", "www.пример.рф", "xn--e1afmkfd.xn--p1ai"},
		{"bare international suffix", "рф", "xn--p1ai"},
		{"international suffix of two labels", "www.食狮.公司.cn", "xn--85x722f.xn--55qx5d.cn"},
		{"right to left", "www.موقع.ایران", "xn--4gbrim.xn--mgba3a4f16a"},
		{"sharp s is not ss", "faß.de", "xn--fa-hia.de"},
		{"a full-width address", "１９２.０.２.１", "192.0.2.1"},

		{"a letter that only exists in lower case", "www.Ⅎ.com", "xn--73g.com"},
		{"no name: invalid UTF-8", "www.B\xff.com", "www.b\ufffd.com"},
		{"no name: a forbidden character", "www.\uFFFD.com.", "www.\uFFFD.com"},
		{"no name: broken punycode beside Unicode", "XN--0.bücher.de", "xn--0.bücher.de"},
		{"broken punycode alone", "www.XN--0.de", "xn--0.de"},
	} {
		t.Run(it.name, func(t *testing.T) {
			if got := Domain(it.host); got != it.want {
				t.Errorf("%q: %q, want %q", it.host, got, it.want)
			}
		})
	}
}

func TestDomain_OneHostDoesNotStandForAnother(t *testing.T) {
	// More hosts than are remembered, so that they take each other's places.
	for range 2 {
		for i := range 5 * rememberedHosts {
			name := "site" + strings.Repeat("x", i%50) + string(rune('a'+i%26)) + strings.Repeat("y", i/50) + ".example"
			if len(name) < 64 && Domain("www."+name) != name {
				t.Fatalf("%s stands for %s", "www."+name, Domain("www."+name))
			}
		}
	}
}

func TestAddress_S4_2_OneForm(t *testing.T) {
	for _, it := range []struct{ address, want string }{
		{"192.0.2.1", "192.0.2.1"},
		{"::ffff:192.0.2.1", "192.0.2.1"},
		{"::ffff:192.0.2.1%eth0", "192.0.2.1"},
		{"2001:db8::1", "2001:db8::1"},
		{"fe80::1%eth0", "fe80::1"},
		{"::192.0.2.1", "::c000:201"},
	} {
		if got := Address(netip.MustParseAddr(it.address)); got != netip.MustParseAddr(it.want) {
			t.Errorf("%s: %s, want %s", it.address, got, it.want)
		}
	}
	if Address(netip.Addr{}).IsValid() {
		t.Error("no address has become one")
	}
}
