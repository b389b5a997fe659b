package harness

import (
	"maps"
	"net"
	"sync"
)

// Echo is the target of UDP: it answers every packet with the address that it came from.
type Echo struct {
	// Address to send to.
	Address string

	access  sync.Mutex
	packets map[string]int
}

// StartEcho runs a UDP target.
func StartEcho(owner Owner) *Echo {
	owner.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		owner.Fatalf("listen for the UDP target: %v", err)
	}
	owner.Cleanup(func() { _ = conn.Close() })
	e := &Echo{Address: conn.LocalAddr().String(), packets: make(map[string]int)}
	go e.serve(conn)
	return e
}

func (e *Echo) serve(conn net.PacketConn) {
	buffer := make([]byte, 2048)
	for {
		_, from, err := conn.ReadFrom(buffer)
		if err != nil {
			return
		}
		source := sourceOf(from.String())
		e.access.Lock()
		e.packets[source]++
		e.access.Unlock()
		_, _ = conn.WriteTo([]byte(source), from)
	}
}

// Packets returns how many packets came from each address.
func (e *Echo) Packets() map[string]int {
	e.access.Lock()
	defer e.access.Unlock()
	return maps.Clone(e.packets)
}
