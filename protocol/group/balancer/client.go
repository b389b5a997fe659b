package balancer

import (
	"context"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/sagernet/sing/common/bufio/deadline"
	E "github.com/sagernet/sing/common/exceptions"
	N "github.com/sagernet/sing/common/network"
)

// client is the connection that an inbound accepted. It finds out whether the client left, or was there when its
// connection through a member ended (S5.3a). Whoever copies it unwraps it.
type client struct {
	stream
	remote atomic.Pointer[conn]
	state  atomic.Uint32
}

type clientState = uint32

const (
	// clientOpen: nobody has closed it.
	clientOpen clientState = iota
	// clientAlive: it was closed on this side while the client was there.
	clientAlive
	// clientLeft: the client closed it, or cannot be asked.
	clientLeft
)

type clientKey struct{}

func withClient(ctx context.Context, it *client) context.Context {
	return context.WithValue(ctx, clientKey{}, it)
}

func clientOf(ctx context.Context) *client {
	it, _ := ctx.Value(clientKey{}).(*client)
	return it
}

// Close asks, before it closes, whether the client is still there, if somebody wants to know.
func (c *client) Close() error {
	if c.state.Load() == clientOpen {
		state := clientLeft
		if remote := c.remote.Load(); remote != nil && !remote.received.Load() && isThere(c.Conn) {
			state = clientAlive
		}
		c.state.CompareAndSwap(clientOpen, state)
	}
	return c.Conn.Close()
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
	if duplex, isDuplex := c.Conn.(N.WriteCloser); isDuplex {
		return duplex.CloseWrite()
	}
	return c.Close()
}
