//go:build linux

package test

import (
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"tarazu/test/harness"
)

// A stream through a balancer, over a direct and over a SOCKS member, is copied by the kernel, both ways; and the client
// may end its half and read on. A member that encrypts shows that the count sees who copies.
func TestCopy_KernelCopiesAndHalvesEnd(t *testing.T) {
	t.Parallel()
	target := harness.StartTarget(t)
	socks, encrypted := harness.StartFaulty(t, 2), harness.StartServer(t, harness.Shadowsocks, 3)
	for _, story := range []struct {
		member object
		kernel bool
	}{{object{"type": "direct", "tag": "direct"}, true}, {socks.Outbound("socks"), true}, {encrypted.Outbound(), false}} {
		member := story.member
		t.Run(member["tag"].(string), func(t *testing.T) {
			t.Parallel()
			// The far side sends back what it gets, and ends when it has got everything.
			address := harness.ServeTCP(t, "127.0.0.1", func(conn net.Conn) { _, _ = io.Copy(conn, conn) })
			port := harness.FreePort(t)
			outbounds := []object{member, {"type": "balancer", "tag": "group", "outbounds": []any{member["tag"]}}}
			process := harness.StartReady(t, harness.Monitored(object{
				"inbounds": []object{{
					"type": "direct", "listen": "127.0.0.1", "listen_port": port, "network": "tcp",
					"override_address": "127.0.0.1", "override_port": netip.MustParseAddrPort(address).Port(),
				}},
				"outbounds": outbounds, "route": object{"final": "group"},
			}, harness.Monitoring(target, object{"interval": "1h"})))
			conn, err := net.Dial("tcp", harness.Loopback(port))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(time.Minute))
			const volume = 32 << 20
			go func() {
				_, _ = io.CopyN(conn, zeros{}, volume)
				if story.kernel { // the other server, which is sing-box's own, ends both halves
					_ = conn.(*net.TCPConn).CloseWrite()
				}
			}()
			before := process.Copied()
			expected := io.Reader(conn)
			if !story.kernel {
				expected = io.LimitReader(conn, volume)
			}
			received, err := io.Copy(io.Discard, expected)
			if err != nil || received != volume {
				t.Errorf("%d bytes came back of %d: %v", received, volume, err)
			}
			// Four passings: read and written, both ways.
			if copied := process.Copied() - before; story.kernel != (copied < 4*volume/20) {
				t.Errorf("the program copied %d bytes of %d by itself", copied, 4*volume)
			}
		})
	}
}

type zeros struct{}

func (zeros) Read(content []byte) (int, error) { return len(content), nil }
