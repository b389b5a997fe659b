package balancer

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"

	"tarazu/experimental/monitoring"

	"github.com/sagernet/sing/common/buf"
	"github.com/sagernet/sing/common/bufio"
	M "github.com/sagernet/sing/common/metadata"
	N "github.com/sagernet/sing/common/network"
)

// stream is a connection inside another: whoever copies the outer one may take the inner instead.
type stream struct {
	net.Conn
}

// A protocol that greets the far side with the first data sent says so; some say it in a way that sing does not look
// for behind a wrapper.
func (s stream) NeedHandshakeForRead() bool  { return N.NeedHandshakeForRead(s.Conn) }
func (s stream) NeedHandshakeForWrite() bool { return N.NeedHandshakeForWrite(s.Conn) }

// half returns what can end one direction: the connection, or one that it wraps and that may be written to instead.
func (s stream) half() (halfCloser, bool) {
	return N.CastWriter[halfCloser](s.Conn)
}

type halfCloser interface {
	io.Writer
	N.WriteCloser
}

func (s stream) ReaderReplaceable() bool { return true }
func (s stream) WriterReplaceable() bool { return true }
func (s stream) Upstream() any           { return s.Conn }

// conn is a tracked stream.
type conn struct {
	stream
	link
	// client is the inbound's side; nil where the connection was opened inside the box.
	client *client
	// past is what the connection has been through.
	past atomic.Uint32
}

const (
	// sent and received say that some data was.
	sent uint32 = 1 << iota
	received
	// finished says that the client has nothing more to send, ended that the member has not.
	finished
	ended
	// broken says that the member's side failed.
	broken
	// greets says that the protocol speaks to the member with the first data, or without any after a while.
	greets
)

func (t *tracker) newConn(ctx context.Context, upstream net.Conn) net.Conn {
	c := &conn{stream: stream{upstream}, client: clientOf(ctx)}
	if c.client != nil {
		c.client.remote.Store(c)
		if c.NeedHandshakeForWrite() {
			c.past.Store(greets)
		}
	}
	t.add(ctx, &c.link, upstream)
	return c
}

func (c *conn) has(been uint32) bool {
	return c.past.Load()&been != 0
}

func (c *conn) countRead(n int64) {
	if !c.has(received) {
		c.past.Or(received)
	}
	if c.has(finished) {
		c.expectMore()
	}
	c.moved(n)
}

// halfLife is how long a member may say nothing to a client that has nothing more to send: most have left altogether, and
// nobody would ever tell a member that keeps its side open.
const halfLife = 5 * time.Minute

func (c *conn) expectMore() {
	_ = c.Conn.SetReadDeadline(time.Now().Add(halfLife))
}

func (c *conn) countWritten(n int64) {
	if !c.has(sent) && c.past.Or(sent)&broken != 0 {
		c.failed() // what was written was counted after the answer to it was seen
	}
	c.moved(n)
}

// Read is for those that do not copy, who see an error here.
func (c *conn) Read(content []byte) (int, error) {
	count, err := c.Conn.Read(content)
	switch {
	case count > 0:
		c.countRead(int64(count))
	case err != nil && c.client == nil && c.has(sent) && !isOwnDoing(err):
		c.failed()
	}
	return count, err
}

// isOwnDoing reports whether a read ended by whoever reads, by the far side's regular end, or by this machine.
func isOwnDoing(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrClosedPipe) ||
		errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.Canceled) || monitoring.IsLocal(err)
}

func (c *conn) Write(content []byte) (int, error) {
	count, err := c.Conn.Write(content)
	if count > 0 {
		c.countWritten(int64(count))
	}
	return count, err
}

// UnwrapReader and UnwrapWriter are for those that copy.
func (c *conn) UnwrapReader() (io.Reader, []N.CountFunc) { return c.Conn, []N.CountFunc{c.countRead} }
func (c *conn) UnwrapWriter() (io.Writer, []N.CountFunc) {
	return c.Conn, []N.CountFunc{c.countWritten}
}

// Close has the member tested if the connection broke on the member's side: what copies closes the side that failed
// first. A client that is still there while its side is closed had data that the member did not take.
func (c *conn) Close() error {
	if c.remove() && c.client != nil && !c.has(finished) && c.client.state.Load() != clientLeft {
		before := c.past.Or(broken)
		if c.client.state.Load() == clientAlive || before&sent != 0 || before&greets != 0 && !c.NeedHandshakeForWrite() {
			c.failed()
		}
	}
	return c.Conn.Close()
}

// failed has the member tested unless the connection received something (S5.3a).
func (c *conn) failed() {
	if !c.has(received) {
		c.tracker.retest()
	}
}

// CloseWrite ends one direction where the member's protocol can, else both.
func (c *conn) CloseWrite() error {
	if c.past.Or(finished)&ended != 0 && c.client != nil {
		return nil // both have: whoever copies closes both sides now
	}
	if half, canHalf := c.half(); canHalf {
		c.expectMore()
		return half.CloseWrite()
	}
	return c.Close()
}

// packetConn is a tracked association.
type packetConn struct {
	N.NetPacketConn
	link
}

func (t *tracker) newPacketConn(ctx context.Context, upstream net.PacketConn) net.PacketConn {
	c := &packetConn{NetPacketConn: bufio.NewPacketConn(upstream)}
	t.add(ctx, &c.link, upstream)
	return c
}

func (c *packetConn) ReadFrom(content []byte) (int, net.Addr, error) {
	count, from, err := c.NetPacketConn.ReadFrom(content)
	if err == nil {
		c.moved(int64(count))
	}
	return count, from, err
}

func (c *packetConn) WriteTo(content []byte, to net.Addr) (int, error) {
	count, err := c.NetPacketConn.WriteTo(content, to)
	if err == nil {
		c.moved(int64(count))
	}
	return count, err
}

func (c *packetConn) ReadPacket(buffer *buf.Buffer) (M.Socksaddr, error) {
	from, err := c.NetPacketConn.ReadPacket(buffer)
	if err == nil {
		c.moved(int64(buffer.Len()))
	}
	return from, err
}

func (c *packetConn) WritePacket(buffer *buf.Buffer, to M.Socksaddr) error {
	count := buffer.Len()
	err := c.NetPacketConn.WritePacket(buffer, to)
	if err == nil {
		c.moved(int64(count))
	}
	return err
}

// UnwrapPacketReader and UnwrapPacketWriter are for those that copy.
func (c *packetConn) UnwrapPacketReader() (N.PacketReader, []N.CountFunc) {
	return c.NetPacketConn, []N.CountFunc{c.moved}
}

func (c *packetConn) UnwrapPacketWriter() (N.PacketWriter, []N.CountFunc) {
	return c.NetPacketConn, []N.CountFunc{c.moved}
}

func (c *packetConn) Close() error {
	c.remove()
	return c.NetPacketConn.Close()
}

func (c *packetConn) ReaderReplaceable() bool { return true }
func (c *packetConn) WriterReplaceable() bool { return true }
func (c *packetConn) Upstream() any           { return c.NetPacketConn }
