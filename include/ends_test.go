package include_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"tarazu/include"
	"tarazu/option"
	"tarazu/protocol/group/balancer"
	"tarazu/test/harness"

	"github.com/sagernet/sing-box"
	boxOption "github.com/sagernet/sing-box/option"
	"github.com/sagernet/sing/common/json"
	M "github.com/sagernet/sing/common/metadata"
)

// startBox runs a box in this program, as an embedder does; it ends with the test.
func startBox(t testing.TB, configuration harness.JSON) *box.Box {
	t.Helper()
	content, err := harness.Encode(configuration)
	if err != nil {
		t.Fatal(err)
	}
	ctx := include.Context(context.Background())
	options, err := json.UnmarshalExtendedContext[option.Options](ctx, content)
	if err != nil {
		t.Fatal(err)
	}
	options.Log = &boxOption.LogOptions{Disabled: true}
	instance, err := box.New(box.Options{Context: ctx, Options: options.Box()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = instance.Close() }) // again does no harm
	if err = instance.Start(); err != nil {
		t.Fatal(err)
	}
	return instance
}

// The counts by which least-connections chooses return to zero (S4.7), however connections end.
func TestOpenConnections_ReturnToZero(t *testing.T) {
	target, echo := harness.StartTarget(t), harness.StartEcho(t)
	one, two := harness.StartFaulty(t, 2), harness.StartFaulty(t, 3)
	port := harness.FreePort(t)
	// The two servers, which carry no UDP, are used even while both are down; UDP has a group of its own.
	laboratory := harness.Monitored(
		harness.Configuration(port, harness.JSON{"strategy": "least-connections"}, one.Outbound("one"), two.Outbound("two")),
		harness.Monitoring(target, harness.JSON{"interval": "1h"}),
	)
	laboratory["outbounds"] = append(laboratory["outbounds"].([]harness.JSON),
		harness.JSON{"type": "direct", "tag": "direct"},
		harness.JSON{"type": "balancer", "tag": "udp", "strategy": "least-connections", "outbounds": []string{"direct"}})
	laboratory["route"].(harness.JSON)["rules"] = []harness.JSON{{"network": "udp", "outbound": "udp"}}
	instance := startBox(t, laboratory)
	groupOf := func(tag string) *balancer.Outbound {
		it, _ := instance.Outbound().Outbound(tag)
		return it.(*balancer.Outbound)
	}
	group, udp := groupOf(harness.BalancerTag), groupOf("udp")
	counts := func() []int64 { return slices.Concat(group.OpenConnections(), udp.OpenConnections()) }
	open := func() (total int64) {
		for _, count := range counts() {
			total += count
		}
		return total
	}
	expectZero := func(after string) {
		t.Helper()
		harness.Eventually(t, 10*time.Second, fmt.Sprint("after ", after, " nothing is open: ", counts()), func() bool {
			return !slices.ContainsFunc(counts(), func(count int64) bool { return count != 0 })
		})
	}
	client := harness.NewClient(port)
	client.Timeout = 300 * time.Millisecond
	together := func(connect func()) {
		var connections sync.WaitGroup
		for range 20 {
			connections.Go(connect)
		}
		connections.Wait()
	}
	for _, mode := range []harness.Mode{harness.Serve, harness.Refuse, harness.Reset, harness.Garbage, harness.Tarpit, harness.Silent, harness.Stall, harness.Serve} {
		one.Become(mode)
		two.Become(mode)
		together(func() { _, _ = client.Get(target.URL) })
		one.Break() // those in which the client's end is not seen, as nothing is sent
		two.Break()
		expectZero(string(mode))
	}
	// The embedder's own connections: some that it closes, some that the server breaks, dials that it gives up.
	destination := M.ParseSocksaddrHostPort("127.0.0.1", uint16(target.Port))
	held := make([]net.Conn, 6)
	for i := range held {
		var err error
		if held[i], err = group.DialContext(t.Context(), "tcp", destination); err != nil {
			t.Fatal(err)
		}
	}
	if open() != int64(len(held)) {
		t.Errorf("%d connections are open, not %d", open(), len(held))
	}
	one.Break()
	for _, conn := range held {
		_ = conn.Close()
		_ = conn.Close() // again and again counts once
	}
	expectZero("closing twice")
	one.Become(harness.Tarpit)
	two.Become(harness.Tarpit)
	together(func() {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if conn, err := group.DialContext(ctx, "tcp", destination); err == nil {
			_ = conn.Close()
		}
	})
	expectZero("dials that were given up")
	if count := one.Connections() + two.Connections(); count != 20 {
		t.Errorf("%d connections for 20 dials that were given up: somebody was tested", count) // S5.3
	}
	// An association ends after a time, or when the client goes. The embedder's ends when closed.
	together(func() {
		packets, err := udp.ListenPacket(t.Context(), M.ParseSocksaddr(echo.Address))
		if err != nil {
			t.Error(err)
			return
		}
		_ = packets.Close()
	})
	together(func() {
		if _, err := client.Exchange(echo.Address); err != nil {
			t.Error(err)
		}
	})
	expectZero("UDP")
	// The box closes while connections are open.
	one.Become(harness.Silent)
	two.Become(harness.Silent)
	client.Timeout = 10 * time.Second
	var connections sync.WaitGroup
	for range 20 {
		connections.Go(func() { _, _ = client.Get(target.URL) })
	}
	harness.Eventually(t, 10*time.Second, "connections are open", func() bool { return open() > 5 })
	if err := instance.Close(); err != nil {
		t.Error(err)
	}
	connections.Wait()
	expectZero("the box is closed")
}
