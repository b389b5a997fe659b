package affinity

import (
	"encoding/binary"
	"net/netip"

	"github.com/cespare/xxhash/v2"
)

// kind says what a frame holds. The numbers are part of every key: a new kind gets a new number.
type kind byte

const (
	frameProcess     kind = 1
	frameSite        kind = 2
	frameSource      kind = 3
	frameDestination kind = 4
	framePort        kind = 5
	frameUser        kind = 6
	frameInbound     kind = 7
)

// framer hashes the parts of a key. Every part is a frame: its bytes, their number and its kind. Read from the end, a
// sequence of frames can be taken apart in one way only, so two connections whose parts differ never hash the same
// bytes: neither ("ab", "c") and ("a", "bc"), nor a user and an inbound of one name.
type framer struct {
	digest xxhash.Digest
	frames int
}

func newFramer() framer {
	var f framer
	f.digest.Reset()
	return f
}

// end closes a frame whose bytes were written. The number comes last because folding a path can change it on the way.
func (f *framer) end(kind kind, length int) {
	var trailer [9]byte
	binary.LittleEndian.PutUint64(trailer[:], uint64(length))
	trailer[8] = byte(kind)
	_, _ = f.digest.Write(trailer[:])
	f.frames++
}

// text adds a text, unless it is empty, which is a missing one.
func (f *framer) text(kind kind, text string) {
	if text == "" {
		return
	}
	_, _ = f.digest.WriteString(text)
	f.end(kind, len(text))
}

// address adds an address, unless it is missing.
func (f *framer) address(kind kind, address netip.Addr) {
	if !address.IsValid() {
		return
	}
	address = Address(address)
	if address.Is4() {
		bytes := address.As4()
		_, _ = f.digest.Write(bytes[:])
		f.end(kind, len(bytes))
		return
	}
	bytes := address.As16()
	_, _ = f.digest.Write(bytes[:])
	f.end(kind, len(bytes))
}

// port adds a port, unless it is 0, which is a missing one.
func (f *framer) port(port uint16) {
	if port == 0 {
		return
	}
	_, _ = f.digest.Write([]byte{byte(port), byte(port >> 8)})
	f.end(framePort, 2)
}

// destination adds the site of the host name, or else the destination address (S4.5).
func (f *framer) destination(c Connection) {
	site := siteOf(c.Domain)
	if site.domain != "" {
		f.text(frameSite, site.domain)
		return
	}
	f.address(frameDestination, destinationOf(c, site))
}

// destinationOf returns the address that the connection goes to, or the one that stands in place of its host name.
func destinationOf(c Connection, site site) netip.Addr {
	if c.Destination.IsValid() {
		return c.Destination
	}
	return site.address
}

func (f *framer) sum() uint64 {
	return f.digest.Sum64()
}
