package harness

import (
	"io"
	"net"
)

// StartGreeter runs a TCP target that speaks first, as mail and SSH servers do, and says the address that a connection
// came from. It returns where it listens.
func StartGreeter(owner Owner) (address string) {
	owner.Helper()
	return ServeTCP(owner, "127.0.0.1", func(conn net.Conn) { _, _ = io.WriteString(conn, sourceOf(conn.RemoteAddr().String())) })
}
