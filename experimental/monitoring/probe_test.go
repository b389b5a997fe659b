package monitoring

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tarazu/option"

	M "github.com/sagernet/sing/common/metadata"
	N "github.com/sagernet/sing/common/network"
)

func probeOf(t *testing.T, settings option.MonitoringSettings) (time.Duration, error) {
	t.Helper()
	return urlProbe(t.Context(), N.SystemDialer, settings)
}

func serve(t *testing.T, handler http.HandlerFunc) (address string) {
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

func TestProbe_S1_4_ExpectedStatus(t *testing.T) {
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodHead {
			t.Errorf("%s request", r.Method)
		}
		if r.URL.Path == "/redirect" {
			http.Redirect(w, r, "/204", http.StatusFound)
			return
		}
		w.WriteHeader(map[string]int{"/204": 204, "/403": 403, "/503": 503}[r.URL.Path])
	})
	for _, it := range []struct {
		path     string
		expected []string
		reason   string
	}{
		{"/204", nil, ""},
		{"/403", nil, ""}, // any status is an answer
		{"/204", []string{"204"}, ""},
		{"/204", []string{"200-299"}, ""},
		{"/403", []string{"204"}, "unexpected status 403 Forbidden"},
		{"/503", []string{"200-299", "301"}, "unexpected status 503 Service Unavailable"},
		{"/redirect", []string{"204"}, "unexpected status 302 Found"}, // a captive portal's, not followed
	} {
		ranges, err := option.ParseStatusRanges(it.expected)
		if err != nil {
			t.Fatal(err)
		}
		_, err = probeOf(t, option.MonitoringSettings{URLs: []string{address + it.path}, ExpectedStatus: ranges})
		if reason := outcomeOf(time.Millisecond, err, time.Second).reason; reason != it.reason {
			t.Errorf("%s, expecting %v: %q, not %q", it.path, it.expected, reason, it.reason)
		}
	}
}

func TestProbe_S1_4_FirstURLThatAnswers(t *testing.T) {
	var asked atomic.Int32
	address := serve(t, func(http.ResponseWriter, *http.Request) { asked.Add(1) })
	if _, err := probeOf(t, option.MonitoringSettings{URLs: []string{"http://127.0.0.1:1/", address, address}}); err != nil {
		t.Fatal(err)
	}
	if asked.Load() != 1 {
		t.Fatal(asked.Load(), " requests")
	}
	_, err := probeOf(t, option.MonitoringSettings{URLs: []string{"http://127.0.0.1:1/", "http://127.0.0.1:2/"}})
	if err == nil || !strings.Contains(err.Error(), "127.0.0.1:2") {
		t.Fatal(err)
	}
}

func TestProbe_S1_4_TimeoutOverAll(t *testing.T) {
	gone := make(chan struct{})
	address := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-gone:
		}
	})
	defer close(gone)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := urlProbe(ctx, N.SystemDialer, option.MonitoringSettings{URLs: []string{address, address}})
	if reason := outcomeOf(0, err, time.Second).reason; reason != "no answer within 1s" {
		t.Fatal(reason)
	}
}

func TestProbe_S1_4a_SecondRequestOnTheSameConnection(t *testing.T) {
	var connections [2]string
	requests := 0
	address := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		connections[requests] = r.RemoteAddr
		requests++
	})
	if _, err := probeOf(t, option.MonitoringSettings{URLs: []string{address}, UnifiedDelay: true}); err != nil {
		t.Fatal(err)
	}
	if requests != 2 || connections[0] != connections[1] {
		t.Fatal(requests, connections)
	}
	// A server that keeps no connection has the first request count.
	address = serve(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Connection", "close") })
	if _, err := probeOf(t, option.MonitoringSettings{URLs: []string{address}, UnifiedDelay: true}); err != nil {
		t.Fatal(err)
	}
}

func TestProbe_CertificateErrorsAreSaid(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	_, err := probeOf(t, option.MonitoringSettings{URLs: []string{server.URL}})
	if reason := outcomeOf(0, err, time.Second).reason; !strings.Contains(reason, "certificate") {
		t.Fatal(reason)
	}
}

func TestProbe_ReadsLittle(t *testing.T) {
	address := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Large", strings.Repeat("x", 64<<10))
	})
	if _, err := probeOf(t, option.MonitoringSettings{URLs: []string{address}}); err == nil {
		t.Fatal("a header of 64 kB was read")
	}
}

// lateWriter is a dialer whose connections know of what they wrote only a while after it was sent.
type lateWriter struct {
	N.Dialer
	wait func()
}

type lateConn struct {
	net.Conn
	wait  func()
	wrote atomic.Bool
}

func (d lateWriter) DialContext(ctx context.Context, network string, destination M.Socksaddr) (net.Conn, error) {
	conn, err := d.Dialer.DialContext(ctx, network, destination)
	return &lateConn{Conn: conn, wait: d.wait}, err
}

func (c *lateConn) Write(content []byte) (int, error) {
	count, err := c.Conn.Write(content)
	c.wait()
	c.wrote.Store(true)
	return count, err
}

func (c *lateConn) Read(content []byte) (int, error) {
	if !c.wrote.Load() {
		return 0, errEarly
	}
	return c.Conn.Read(content)
}

var errEarly = errors.New("read before the request was written")

// A member whose answer is there before its own writer has returned is not blamed for it.
func TestProbe_ReadsNothingBeforeTheRequestIsWritten(t *testing.T) {
	answered := make(chan struct{}, 2)
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateIdle {
			answered <- struct{}{}
		}
	}
	server.Start()
	defer server.Close()
	late := lateWriter{Dialer: N.SystemDialer, wait: func() { <-answered }}
	if _, err := urlProbe(t.Context(), late, option.MonitoringSettings{URLs: []string{server.URL}, UnifiedDelay: true}); err != nil {
		t.Fatal(err)
	}
}
