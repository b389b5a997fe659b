package monitoring

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"tarazu/option"

	N "github.com/sagernet/sing/common/network"
)

// FIELD case 54: a TLS server that stalls after the ClientHello, 500 tests: each fails at its timeout, no descriptor is
// left open and, as every test of this package is looked at for it, no goroutine.
func TestURLProbe_Field54_StallAfterClientHello(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var held sync.WaitGroup
	held.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			held.Go(func() {
				defer conn.Close()
				_, _ = io.Copy(io.Discard, conn)
			})
		}
	})
	descriptors := openDescriptors(t)
	settings := option.MonitoringSettings{URLs: []string{"https://" + listener.Addr().String() + "/"}}
	const timeout = 100 * time.Millisecond
	slots := make(chan struct{}, 50)
	var tests sync.WaitGroup
	for range 500 {
		slots <- struct{}{}
		tests.Go(func() {
			defer func() { <-slots }()
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			_, err := urlProbe(ctx, N.SystemDialer, settings)
			if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) < timeout {
				t.Errorf("after %v: %v", time.Since(began), err)
			}
		})
	}
	tests.Wait()
	_ = listener.Close()
	held.Wait()
	if after := openDescriptors(t); after > descriptors {
		t.Errorf("%d descriptors, %d before", after, descriptors)
	}
}

func openDescriptors(t *testing.T) int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip(err)
	}
	return len(entries)
}
