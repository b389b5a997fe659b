package balancer

import (
	"context"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/sagernet/sing-box/common/interrupt"
	"github.com/sagernet/sing/common/bufio/deadline"
	E "github.com/sagernet/sing/common/exceptions"
)

// client is the connection that an inbound accepted, and the context in which its connection through a member is opened:
// one object, for there may be a hundred thousand. It finds out whether the client left, or was there when its connection
// through a member ended (S5.3a). Whoever copies it unwraps it.
type client struct {
	stream
	parent context.Context
	remote atomic.Pointer[conn]
	state  atomic.Uint32
}

type clientState = uint32

const (
	// clientOpen: nobody has closed it.
	clientOpen clientState = iota
	// clientAlive: it was closed on this side, or its half was, while the client was there.
	clientAlive
	// clientLeft: the client closed it, or cannot be asked.
	clientLeft
)

// accepted returns a connection that an inbound accepted.
func accepted(ctx context.Context, conn net.Conn) *client {
	return &client{stream: stream{conn}, parent: ctx}
}

// context is the one in which the client's connection through a member is opened.
func (c *client) context() context.Context {
	return (*clientContext)(c)
}

// clientOf returns the client for which a connection is opened; nil where it is opened inside the box.
func clientOf(ctx context.Context) *client {
	it, _ := ctx.Value(clientKey{}).(*client)
	return it
}

// clientContext is a client as a context: of a connection from an inbound (S6.2), and of the client itself.
type clientContext client

type clientKey struct{}

var externalContext = interrupt.ContextWithIsExternalConnection(context.Background())

func (c *clientContext) Deadline() (time.Time, bool) { return c.parent.Deadline() }
func (c *clientContext) Done() <-chan struct{}       { return c.parent.Done() }
func (c *clientContext) Err() error                  { return c.parent.Err() }

func (c *clientContext) Value(key any) any {
	if key == (clientKey{}) {
		return (*client)(c)
	}
	if value := externalContext.Value(key); value != nil {
		return value
	}
	return c.parent.Value(key)
}

// Close asks, before it closes, whether the client is still there, if somebody wants to know.
func (c *client) Close() error {
	if c.state.Load() == clientOpen {
		state := clientLeft
		if c.remoteSilent() && isThere(c.Conn) {
			state = clientAlive
		}
		c.state.CompareAndSwap(clientOpen, state)
	}
	return c.Conn.Close()
}

// remoteSilent reports whether the member has sent nothing.
func (c *client) remoteSilent() bool {
	remote := c.remote.Load()
	return remote != nil && !remote.has(received)
}

// isThere reports whether a connection that nobody reads any more, and that is about to be closed, is alive: data, or
// silence, says so.
func isThere(conn net.Conn) bool {
	if deadline.NeedAdditionalReadDeadline(conn) || conn.SetReadDeadline(time.Now().Add(time.Millisecond)) != nil {
		return false
	}
	_, err := conn.Read(make([]byte, 1))
	return err == nil || E.IsMulti(err, os.ErrDeadlineExceeded)
}

// CloseWrite ends one direction where the inbound's protocol can, else both.
func (c *client) CloseWrite() error {
	half, canHalf := c.half()
	if !canHalf {
		return c.Close()
	}
	if remote := c.remote.Load(); remote != nil && remote.past.Or(ended)&finished != 0 {
		return nil // both have: whoever copies closes both sides now
	}
	if c.remoteSilent() {
		// The member's end seems regular, but if it takes no more data either, the system told that to who wrote.
		c.state.CompareAndSwap(clientOpen, clientAlive)
	}
	return half.CloseWrite()
}
