package harness

import (
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"sync"
	"time"
)

// Target is the web server that connections go to. It tells each by which address it came.
type Target struct {
	// URL answers GET with the client's address. Port is its port on 127.0.0.1.
	URL  string
	Port int
	// TestURL answers 204, for the monitor.
	TestURL string

	access   sync.Mutex
	delays   map[string]time.Duration
	tests    map[string]int
	requests map[string]int
}

// StartTarget runs a target.
func StartTarget(owner Owner) *Target {
	owner.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		owner.Fatalf("listen for the target: %v", err)
	}
	t := &Target{
		URL:      fmt.Sprintf("http://%s/", listener.Addr()),
		Port:     listener.Addr().(*net.TCPAddr).Port,
		TestURL:  fmt.Sprintf("http://%s/generate_204", listener.Addr()),
		delays:   make(map[string]time.Duration),
		tests:    make(map[string]int),
		requests: make(map[string]int),
	}
	routes := http.NewServeMux()
	routes.HandleFunc("GET /generate_204", t.test) // HEAD too
	routes.HandleFunc("GET /", t.request)
	server := &http.Server{Handler: routes}
	go func() { _ = server.Serve(listener) }()
	owner.Cleanup(func() { _ = server.Close() })
	return t
}

func (t *Target) test(writer http.ResponseWriter, request *http.Request) {
	source := sourceOf(request.RemoteAddr)
	t.access.Lock()
	t.tests[source]++
	delay := t.delays[source]
	t.access.Unlock()
	if rest(request.Context().Done(), delay) {
		writer.WriteHeader(http.StatusNoContent)
	}
}

func (t *Target) request(writer http.ResponseWriter, request *http.Request) {
	source := sourceOf(request.RemoteAddr)
	t.access.Lock()
	t.requests[source]++
	t.access.Unlock()
	// With a length, for a proxy may not end a body that only the connection's end delimits.
	writer.Header().Set("Content-Length", fmt.Sprint(len(source)))
	_, _ = io.WriteString(writer, source)
}

func sourceOf(address string) string {
	host, _, _ := net.SplitHostPort(address)
	return host
}

// rest lets time pass and reports whether it passed before the end.
func rest(end <-chan struct{}, duration time.Duration) bool {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-end:
		return false
	}
}

// DelayTests has tests from an address answered late.
func (t *Target) DelayTests(source string, delay time.Duration) {
	t.access.Lock()
	defer t.access.Unlock()
	t.delays[source] = delay
}

// Tests returns how many tests came from each address.
func (t *Target) Tests() map[string]int {
	t.access.Lock()
	defer t.access.Unlock()
	return maps.Clone(t.tests)
}

// Requests returns how many connections other than tests came from each address.
func (t *Target) Requests() map[string]int {
	t.access.Lock()
	defer t.access.Unlock()
	return maps.Clone(t.requests)
}

// AwaitRounds waits until each of some addresses was tested as often as that again.
func (t *Target) AwaitRounds(owner Owner, rounds int, sources ...string) {
	owner.Helper()
	before := t.Tests()
	Eventually(owner, patience, fmt.Sprint(rounds, " more tests from each of ", sources), func() bool {
		now := t.Tests()
		for _, source := range sources {
			if now[source] < before[source]+rounds {
				return false
			}
		}
		return true
	})
}
