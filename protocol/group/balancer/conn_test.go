package balancer

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"tarazu/adapter"

	"github.com/sagernet/sing/common/bufio"
	N "github.com/sagernet/sing/common/network"
)

// touches is a monitor of which only traffic is seen.
type touches struct {
	adapter.Monitor
	count int
}

func (m *touches) Touch(context.Context) { m.count++ }

// tracked is a connection to a member, over TCP, and the member's end of it.
func tracked(t *testing.T, ctx context.Context) (connection *conn, far *net.TCPConn, monitor *touches, retests *int) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	near, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	farConn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = near.Close()
		_ = farConn.Close()
	})
	monitor, retests = new(touches), new(int)
	tracker := &tracker{load: new(load), monitor: monitor, retest: func() { *retests++ }}
	return tracker.newConn(ctx, near).(*conn), farConn.(*net.TCPConn), monitor, retests
}

// Whoever copies gets the connection itself, so that the kernel can copy, and counts all the same.
func TestConn_S5_3a_CopiesTakeTheCountersOff(t *testing.T) {
	c, _, monitor, _ := tracked(t, t.Context())
	reader, counters := N.UnwrapCountReader(c, nil)
	if reader != c.Conn || len(counters) != 1 {
		t.Fatal(reader, len(counters))
	}
	counters[0](1)
	writer, counters := N.UnwrapCountWriter(c, nil)
	if writer != c.Conn || len(counters) != 1 {
		t.Fatal(writer, len(counters))
	}
	counters[0](1)
	if !c.has(received) || !c.has(sent) || monitor.count != 2 {
		t.Fatal("not counted")
	}
	if reader, _ := N.UnwrapCountReader(&client{stream: stream{c.Conn}}, nil); reader != c.Conn {
		t.Fatal("a client's connection is not unwrapped")
	}
	packets, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer packets.Close()
	association := bufio.NewPacketConn(c.tracker.newPacketConn(t.Context(), packets))
	packetReader, counters := N.UnwrapCountPacketReader(association, nil)
	if it, isUDP := packetReader.(*bufio.ExtendedUDPConn); !isUDP || it.UDPConn != packets || len(counters) != 1 {
		t.Fatal(packetReader, len(counters))
	}
	counters[0](1)
	if monitor.count != 3 {
		t.Fatal("not counted")
	}
}

// Who reads for themselves: an error after something was sent and nothing received has the member tested, anything else
// has not.
func TestConn_S5_3a_OwnReads(t *testing.T) {
	for _, it := range []struct {
		name     string
		sends    bool
		receives bool
		end      func(c *conn, far *net.TCPConn)
		retests  int
	}{
		{"reset", true, false, func(_ *conn, far *net.TCPConn) { _, _ = far.SetLinger(0), far.Close() }, 1},
		{"reset, nothing sent", false, false, func(_ *conn, far *net.TCPConn) { _, _ = far.SetLinger(0), far.Close() }, 0},
		{"reset after an answer", true, true, func(_ *conn, far *net.TCPConn) { _, _ = far.SetLinger(0), far.Close() }, 0},
		{"regular end", true, false, func(_ *conn, far *net.TCPConn) { _, _ = io.ReadFull(far, make([]byte, 5)); _ = far.Close() }, 0},
		{"closed here", true, false, func(c *conn, _ *net.TCPConn) { _ = c.Close() }, 0},
		{"deadline", true, false, func(c *conn, _ *net.TCPConn) { _ = c.SetReadDeadline(time.Now()) }, 0},
	} {
		t.Run(it.name, func(t *testing.T) {
			c, far, _, retests := tracked(t, t.Context())
			if it.sends {
				if _, err := io.WriteString(c, "hello"); err != nil {
					t.Fatal(err)
				}
			}
			if it.receives {
				if _, err := io.WriteString(far, "x"); err != nil {
					t.Fatal(err)
				}
				if _, err := c.Read(make([]byte, 1)); err != nil {
					t.Fatal(err)
				}
			}
			it.end(c, far)
			if _, err := c.Read(make([]byte, 1)); err == nil {
				t.Fatal("no error")
			}
			_ = c.Close()
			if *retests != it.retests {
				t.Fatal(*retests, " retests")
			}
		})
	}
}

// What a copy does when a side fails, step by step, and whose failure that is.
func TestConn_S5_3a_WhoFailed(t *testing.T) {
	for _, it := range []struct {
		name    string
		steps   func(c *conn, it *client, there net.Conn)
		retests int
	}{
		{"the member resets", func(c *conn, it *client, _ net.Conn) { c.countWritten(5); _, _ = c.Close(), it.Close() }, 1},
		{"counted late", func(c *conn, it *client, _ net.Conn) { _, _ = c.Close(), it.Close(); c.countWritten(5) }, 1},
		{"nothing was sent", func(c *conn, it *client, _ net.Conn) { _, _ = c.Close(), it.Close() }, 0},
		{"something was received", func(c *conn, it *client, _ net.Conn) { c.countWritten(5); c.countRead(1); _, _ = c.Close(), it.Close() }, 0},
		{"the member takes no data", func(c *conn, it *client, _ net.Conn) { _, _ = it.Close(), c.Close() }, 1},
		{"the client resets", func(c *conn, it *client, there net.Conn) {
			c.countWritten(5)
			_, _ = there.(*net.TCPConn).SetLinger(0), there.Close()
			_, _ = it.Read(make([]byte, 1))
			_, _ = it.Close(), c.Close()
		}, 0},
		{"the client ends, then the member", func(c *conn, it *client, _ net.Conn) {
			c.countWritten(5)
			_, _, _ = c.CloseWrite(), c.Close(), it.Close()
		}, 0},
		{"the member ends, then the client", func(c *conn, it *client, _ net.Conn) {
			c.countWritten(5)
			_, _, _, _ = it.CloseWrite(), c.CloseWrite(), c.Close(), it.Close()
		}, 0},
		{"the member ends, and takes no data", func(c *conn, it *client, there net.Conn) {
			c.countWritten(5)
			_, _ = it.CloseWrite(), there.Close()
			_, _ = it.Close(), c.Close()
		}, 1},
		{"a rule closes", func(c *conn, it *client, _ net.Conn) {
			c.countWritten(5)
			closeAll(c.tracker.take(true))
			_, _ = c.Close(), it.Close()
		}, 0},
	} {
		t.Run(it.name, func(t *testing.T) {
			inbound, there, _, _ := tracked(t, t.Context())
			client := accepted(t.Context(), inbound.Conn)
			c, _, _, retests := tracked(t, client.context())
			it.steps(c, client, there)
			_ = c.Close() // again and again counts once
			if *retests != it.retests {
				t.Fatal(*retests, " retests")
			}
		})
	}
}

func TestConn_OwnDoing(t *testing.T) {
	for err, own := range map[error]bool{
		io.EOF: true, net.ErrClosed: true, os.ErrDeadlineExceeded: true, context.Canceled: true, syscall.ENETUNREACH: true,
		io.ErrUnexpectedEOF: false, syscall.ECONNRESET: false, errors.New("bad record MAC"): false,
	} {
		if isOwnDoing(err) != own {
			t.Error(err, ": ", !own)
		}
	}
}

// halfPipe is a pipe whose writing end can be closed alone.
type halfPipe struct{ net.Conn }

func (halfPipe) CloseWrite() error { return nil }

// A client that has sent all it had, and most likely left, does not keep a silent member's connection for ever; one that
// is still being answered is.
func TestConn_HalfOfItEndsWhenNothingMoreComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer near.Close()
		defer far.Close()
		tracker := &tracker{load: new(load), monitor: new(touches), retest: func() {}}
		c := tracker.newConn(t.Context(), halfPipe{near}).(*conn)
		if err := c.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		go func() {
			for range 10 {
				time.Sleep(halfLife - time.Second)
				_, _ = far.Write([]byte{0})
			}
		}()
		began := time.Now()
		for range 10 {
			if _, err := c.Read(make([]byte, 1)); err != nil {
				t.Fatalf("after %v: %v", time.Since(began), err)
			}
		}
		answered := time.Now()
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(answered) != halfLife {
			t.Fatalf("after %v: %v", time.Since(answered), err)
		}
	})
}
