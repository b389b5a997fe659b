package test

import (
	"testing"
	"time"

	"tarazu/test/harness"
)

// Every protocol carries what goes through a balancer: requests, targets that speak first, and UDP. Each gets its turn.
func TestProtocols_TCPAndUDP(t *testing.T) {
	t.Parallel()
	target, echo, greeter := harness.StartTarget(t), harness.StartEcho(t), harness.StartGreeter(t)
	var members []object
	var tags, sources []string
	for i, protocol := range harness.Protocols {
		server := harness.StartServer(t, protocol, 2+i)
		members = append(members, server.Outbound())
		tags = append(tags, server.Tag)
		sources = append(sources, server.Address)
	}
	port := harness.FreePort(t)
	process := harness.StartReady(t, harness.Monitored(
		harness.Configuration(port, object{"delay_acceptable_ratio": wide}, members...),
		harness.Monitoring(target, nil),
	))
	awaitUp(process, 0, tags...)
	client := harness.NewClient(port)
	client.Timeout = 3 * time.Second
	for _, kind := range []struct {
		name    string
		count   int
		connect func() (source string, err error)
	}{
		{"a request", 20, func() (string, error) { return client.Get(target.URL) }},
		// Only one a member: sing-box waits a while for what a client may have to say.
		{"a target that speaks first", 5, func() (string, error) { return client.Hear(greeter) }},
		{"UDP", 20, func() (string, error) { return client.Exchange(echo.Address) }},
	} {
		shares := make(map[string]int)
		for range kind.count {
			source, err := kind.connect()
			if err != nil {
				t.Errorf("%s: %v", kind.name, err)
			}
			shares[source]++
		}
		expectShares(t, kind.name, shares, equally(kind.count, sources...))
	}
}
