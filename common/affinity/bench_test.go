package affinity

import (
	"fmt"
	"testing"

	"tarazu/option"
)

func TestKey_NoAllocation(t *testing.T) {
	windows := with(func(c *Connection) { c.Process = `C:\Program Files\Mozilla Firefox\firefox.exe` })
	address := with(func(c *Connection) { c.Domain = "" })
	everything := ^Selector(0)
	for name, c := range map[string]Connection{"a host": full, "an address": address, "a Windows path": windows, "nothing": {}} {
		if n := testing.AllocsPerRun(1_000, func() {
			everything.Key(c)
			DestinationKey(c)
		}); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkKey(b *testing.B) {
	for _, sticky := range [][]string{
		{option.StickyProcess, option.StickyDomain},
		{option.StickySourceIP, option.StickyDomain},
		{option.StickyProcess, option.StickyDomain, option.StickySourceIP, option.StickyDestIP, option.StickyDestPort, option.StickyUser, option.StickyInbound},
	} {
		b.Run(fmt.Sprint(sticky), func(b *testing.B) {
			s, err := Compile(sticky)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				s.Key(full)
			}
		})
	}
}

func BenchmarkDestinationKey(b *testing.B) {
	b.Run("host", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			DestinationKey(full)
		}
	})
	b.Run("address", func(b *testing.B) {
		c := Connection{Destination: full.Destination}
		b.ReportAllocs()
		for b.Loop() {
			DestinationKey(c)
		}
	})
}

// BenchmarkResolve is what a host costs that is not remembered.
func BenchmarkResolve(b *testing.B) {
	for _, host := range []string{"www.example.com", "WWW.Example.co.uk.", "www.bücher.de", "192.0.2.1"} {
		b.Run(host, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				resolve(host)
			}
		})
	}
}
