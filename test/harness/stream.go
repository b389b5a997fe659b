package harness

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"
)

// Echoes is a TCP target that says where a connection comes from, and then sends back what it gets.
type Echoes struct {
	// Address to connect to.
	Address string

	access sync.Mutex
	open   map[string]int
}

// StartEchoes runs such a target.
func StartEchoes(owner Owner) *Echoes {
	owner.Helper()
	e := &Echoes{open: make(map[string]int)}
	e.Address = ServeTCP(owner, "127.0.0.1", func(conn net.Conn) {
		source := sourceOf(conn.RemoteAddr().String())
		e.count(source, 1)
		defer e.count(source, -1)
		_, _ = fmt.Fprintf(conn, "%-*s", greeting, source)
		_, _ = io.Copy(conn, conn)
	})
	return e
}

// greeting is how long the first words of Echoes are.
const greeting = 15

func (e *Echoes) count(source string, by int) {
	e.access.Lock()
	defer e.access.Unlock()
	e.open[source] += by
}

// Open counts the connections from a source that are open.
func (e *Echoes) Open(source string) int {
	e.access.Lock()
	defer e.access.Unlock()
	return e.open[source]
}

// ServeTCP has each connection to a port of an IPv4 address served, and closed afterwards. It returns where it listens.
func ServeTCP(owner Owner, host string, serve func(conn net.Conn)) (address string) {
	owner.Helper()
	listener, err := net.Listen("tcp4", net.JoinHostPort(host, "0"))
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

// Stream is a connection through a program, to Echoes.
type Stream struct {
	// Patience is how long an answer may take.
	Patience time.Duration

	conn   net.Conn
	source string
}

// Open opens a stream, which ends with the owner.
func (c *Client) Open(owner Owner, destination string) *Stream {
	owner.Helper()
	stream, err := c.TryOpen(destination)
	if err != nil {
		owner.Fatalf("open a stream: %v", err)
		return nil
	}
	owner.Cleanup(func() { _ = stream.conn.Close() })
	return stream
}

// TryOpen is Open where a failure is no surprise.
func (c *Client) TryOpen(destination string) (*Stream, error) {
	target, err := netip.ParseAddrPort(destination)
	if err != nil {
		return nil, err
	}
	conn, err := net.DialTimeout("tcp", c.Inbound, c.Timeout)
	if err != nil {
		return nil, err
	}
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err = requestSOCKS(conn, socksConnect, target); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return &Stream{Patience: patience, conn: conn}, nil
}

// Known is where the target sees the stream come from, as far as it said so.
func (s *Stream) Known() string {
	return s.source
}

func (s *Stream) hear() error {
	if s.source != "" {
		return nil
	}
	_ = s.conn.SetDeadline(time.Now().Add(s.Patience))
	words := make([]byte, greeting)
	if _, err := io.ReadFull(s.conn, words); err != nil {
		return fmt.Errorf("read where a stream comes from: %w", err)
	}
	s.source = strings.TrimSpace(string(words))
	return nil
}

// Source waits until it is known where the target sees the stream come from.
func (s *Stream) Source(owner Owner) string {
	owner.Helper()
	if err := s.hear(); err != nil {
		owner.Fatalf("%v", err)
	}
	return s.source
}

// Send sends a text.
func (s *Stream) Send(owner Owner, text string) {
	owner.Helper()
	if err := s.send(text); err != nil {
		owner.Errorf("send %q: %v", text, err)
	}
}

func (s *Stream) send(text string) error {
	_ = s.conn.SetDeadline(time.Now().Add(s.Patience))
	_, err := io.WriteString(s.conn, text)
	return err
}

// Expect sends a text and fails unless it comes back.
func (s *Stream) Expect(owner Owner, text string) {
	owner.Helper()
	if err := s.Try(text); err != nil {
		owner.Fatalf("%v", err)
	}
}

// Try is Expect where a failure is no surprise.
func (s *Stream) Try(text string) error {
	if err := errors.Join(s.hear(), s.send(text)); err != nil {
		return err
	}
	answer := make([]byte, len(text))
	if _, err := io.ReadFull(s.conn, answer); err != nil || string(answer) != text {
		return fmt.Errorf("sent %q, got %q: %w", text, answer, err)
	}
	return nil
}

// EndsWithin reports whether the far side ends the stream, with nothing more said, within a time.
func (s *Stream) EndsWithin(within time.Duration) bool {
	return endsWithin(s.conn, within)
}

func endsWithin(conn net.Conn, within time.Duration) bool {
	_ = conn.SetDeadline(time.Now().Add(within))
	_, err := conn.Read(make([]byte, 1))
	return err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
}

// Leave ends the stream, by a reset if rudely.
func (s *Stream) Leave(rudely bool) {
	if rudely {
		reset(s.conn)
	}
	_ = s.conn.Close()
}
