package monitoring

import (
	"net"
	"sync"
)

// clientFirst is a connection of a protocol in which the client speaks first, as HTTP does: nothing is read before the
// first write has ended. A client of Shadowsocks 2022 needs it, which remembers what to expect of the answer only after
// its request was written: on a line of microseconds a reader could be there before.
type clientFirst struct {
	net.Conn
	spoken func()
	// silence ends with the first write, or with the connection.
	silence <-chan struct{}
}

func newClientFirst(conn net.Conn) *clientFirst {
	silence := make(chan struct{})
	return &clientFirst{Conn: conn, spoken: sync.OnceFunc(func() { close(silence) }), silence: silence}
}

func (c *clientFirst) Read(content []byte) (int, error) {
	<-c.silence
	return c.Conn.Read(content)
}

func (c *clientFirst) Write(content []byte) (int, error) {
	defer c.spoken()
	return c.Conn.Write(content)
}

func (c *clientFirst) Close() error {
	defer c.spoken()
	return c.Conn.Close()
}
