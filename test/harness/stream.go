package harness

import (
	"io"
	"net"
	"net/netip"
	"time"
)

// Stream is a connection through a program, to a StartTCPEcho.
type Stream struct {
	conn net.Conn
}

// StartTCPEcho runs a TCP target that sends back what it gets. It returns where it listens.
func StartTCPEcho(owner Owner) (address string) {
	owner.Helper()
	return serveTCP(owner, func(conn net.Conn) { _, _ = io.Copy(conn, conn) })
}

// serveTCP has each connection to a port of 127.0.0.1 served, and closed afterwards. It returns where it listens.
func serveTCP(owner Owner, serve func(conn net.Conn)) (address string) {
	owner.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		owner.Fatalf("listen for a target: %v", err)
	}
	owner.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				serve(conn)
			}()
		}
	}()
	return listener.Addr().String()
}

// Open opens a stream, which ends with the owner.
func (c *Client) Open(owner Owner, destination string) *Stream {
	owner.Helper()
	target, err := netip.ParseAddrPort(destination)
	if err != nil {
		owner.Fatalf("%v", err)
	}
	conn, err := net.DialTimeout("tcp", c.Inbound, c.Timeout)
	if err != nil {
		owner.Fatalf("connect to the inbound: %v", err)
	}
	owner.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err = requestSOCKS(conn, socksConnect, target); err != nil {
		owner.Fatalf("open a stream: %v", err)
	}
	return &Stream{conn}
}

// Send sends a text.
func (s *Stream) Send(owner Owner, text string) {
	owner.Helper()
	_ = s.conn.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(s.conn, text); err != nil {
		owner.Errorf("send %q: %v", text, err)
	}
}

// Expect sends a text and fails unless it comes back.
func (s *Stream) Expect(owner Owner, text string) {
	owner.Helper()
	s.Send(owner, text)
	answer := make([]byte, len(text))
	if _, err := io.ReadFull(s.conn, answer); err != nil || string(answer) != text {
		owner.Fatalf("sent %q, got %q, %v", text, answer, err)
	}
}

// Leave ends the stream, by a reset if rudely.
func (s *Stream) Leave(rudely bool) {
	if rudely {
		reset(s.conn)
	}
	_ = s.conn.Close()
}
