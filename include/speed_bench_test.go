package include_test

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"tarazu/test/harness"
)

// BenchmarkSpeed compares a balancer with a selector over the same direct outbounds, in the same process, in turn. What it
// reports are medians over pairs of the balancer's figure by the selector's: bulk bytes per second, new connections per
// second, the 99th percentile of the time to the first byte (less is better), and packets per second.
func BenchmarkSpeed(b *testing.B) {
	for _, members := range []int{1, 100} {
		b.Run(fmt.Sprint(members, "-members"), func(b *testing.B) {
			source, echo := startSource(b), harness.StartEcho(b)
			ways := startPair(b, members, source, echo.Address)
			for _, it := range []struct {
				name    string
				measure func(b *testing.B, way way) float64
			}{
				{"bulk", bulk}, {"connections", connections}, {"first-byte-p99", firstByte}, {"packets", packets},
			} {
				b.Run(it.name, func(b *testing.B) {
					var ratios []float64
					for b.Loop() {
						// Whoever is first in a pair changes.
						var of [2]float64
						order := []int{0, 1}
						if len(ratios)%2 == 1 {
							order = []int{1, 0}
						}
						for _, i := range order {
							of[i] = it.measure(b, ways[i])
						}
						ratios = append(ratios, of[1]/of[0])
					}
					slices.Sort(ratios)
					b.ReportMetric(0, "ns/op")
					b.ReportMetric(ratios[len(ratios)/2], "ratio")
				})
			}
		})
	}
}

// way is through a group: where to connect, and where to send packets.
type way struct {
	tcp, udp string
}

// startPair runs a box with a selector and a balancer over the same members, each behind inbounds of its own.
func startPair(b *testing.B, members int, tcpTarget, udpTarget string) (ways [2]way) {
	b.Helper()
	target := harness.StartTarget(b)
	tags := make([]string, members)
	var inbounds, outbounds, rules []harness.JSON
	for i := range tags {
		tags[i] = fmt.Sprint("member-", i)
		outbounds = append(outbounds, harness.JSON{"type": "direct", "tag": tags[i]})
	}
	for i, group := range []string{"selector", "balancer"} {
		outbounds = append(outbounds, harness.JSON{"type": group, "tag": group, "outbounds": tags})
		for network, destination := range map[string]string{"tcp": tcpTarget, "udp": udpTarget} {
			address, err := net.ResolveTCPAddr("tcp", destination)
			if err != nil {
				b.Fatal(err)
			}
			port := harness.FreePort(b)
			tag := group + " " + network
			inbounds = append(inbounds, harness.JSON{
				"type": "direct", "tag": tag, "network": network, "listen": "127.0.0.1", "listen_port": port,
				"override_address": "127.0.0.1", "override_port": address.Port,
			})
			rules = append(rules, harness.JSON{"inbound": tag, "outbound": group})
			if network == "tcp" {
				ways[i].tcp = harness.Loopback(port)
			} else {
				ways[i].udp = harness.Loopback(port)
			}
		}
	}
	startBox(b, harness.Monitored(
		harness.JSON{"inbounds": inbounds, "outbounds": outbounds, "route": harness.JSON{"rules": rules}},
		harness.Monitoring(target, harness.JSON{"interval": "1h", "idle_timeout": "1h"}),
	))
	return ways
}

// startSource runs a server that sends as many bytes as it is asked for.
func startSource(b *testing.B) (address string) {
	b.Helper()
	block := make([]byte, 256<<10)
	return harness.ServeTCP(b, "127.0.0.1", func(conn net.Conn) {
		var wanted uint64
		if binary.Read(conn, binary.BigEndian, &wanted) != nil {
			return
		}
		for wanted > 0 {
			sent, err := conn.Write(block[:min(wanted, uint64(len(block)))])
			if err != nil {
				return
			}
			wanted -= uint64(sent)
		}
	})
}

// fetch gets as many bytes through a way and returns when the first was there.
func fetch(b *testing.B, way way, wanted uint64) (first time.Duration) {
	began := time.Now()
	conn, err := net.Dial("tcp", way.tcp)
	if err != nil {
		b.Error(err)
		return 0
	}
	defer conn.Close()
	if err = binary.Write(conn, binary.BigEndian, wanted); err == nil {
		_, err = io.ReadFull(conn, make([]byte, 1))
	}
	first = time.Since(began)
	var rest int64
	if err == nil && wanted > 1 {
		rest, err = io.Copy(io.Discard, conn)
	}
	if err != nil || wanted > 1 && rest != int64(wanted)-1 {
		b.Errorf("%d bytes of %d: %v", rest, wanted, err)
	}
	return first
}

func bulk(b *testing.B, way way) float64 {
	const volume = 512 << 20
	began := time.Now()
	fetch(b, way, volume)
	return volume / time.Since(began).Seconds()
}

// many makes short connections, some at a time, and returns the times to their first bytes.
func many(b *testing.B, way way, atOnce int) (firsts []time.Duration, took time.Duration) {
	const count = 3000
	firsts = make([]time.Duration, count)
	began := time.Now()
	var clients sync.WaitGroup
	for client := range atOnce {
		clients.Go(func() {
			for i := client; i < count; i += atOnce {
				firsts[i] = fetch(b, way, 1)
			}
		})
	}
	clients.Wait()
	return firsts, time.Since(began)
}

func connections(b *testing.B, way way) float64 {
	firsts, took := many(b, way, 8)
	return float64(len(firsts)) / took.Seconds()
}

func firstByte(b *testing.B, way way) float64 {
	firsts, _ := many(b, way, 1) // not what a crowd does to a queue
	slices.SortFunc(firsts, cmp.Compare[time.Duration])
	return firsts[len(firsts)*99/100].Seconds()
}

// packets sends packets of one association, a window of them under way at a time.
func packets(b *testing.B, way way) float64 {
	const count, window = 20000, 32
	conn, err := net.Dial("udp", way.udp)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	packet, answer := make([]byte, 1200), make([]byte, 2048)
	send := func() { _, _ = conn.Write(packet) }
	began := time.Now()
	for range window {
		send()
	}
	for range count {
		_ = conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		_, _ = conn.Read(answer) // one that is lost is sent anew
		send()
	}
	return count / time.Since(began).Seconds()
}
