package harness

import (
	"io"
	"net"
)

// StartGreeter runs a TCP target that speaks first, as mail and SSH servers do, and says the address that a connection
// came from. It returns where it listens.
func StartGreeter(owner Owner) (address string) {
	owner.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		owner.Fatalf("listen for the greeter: %v", err)
	}
	owner.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, sourceOf(conn.RemoteAddr().String()))
			_ = conn.Close()
		}
	}()
	return listener.Addr().String()
}
