// Command demo shows the main job on this machine alone: four real servers, of which one is slow and one dies and comes
// back, and a client that balances 200 requests over them. It ends with status 0 only if what it saw is right.
package main

import (
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"tarazu/test/harness"
)

const (
	spread  = "spread"  // the round-robin balancer
	fastest = "fastest" // the lowest-delay balancer
	// slowness of the slow server, each way. Its tests take several times that, far above twice the fastest (S3.2).
	slowness = 150 * time.Millisecond
)

func main() {
	if len(os.Args) == 2 {
		_ = os.Setenv(harness.BinaryVariable, os.Args[1])
	}
	program := new(harness.Program)
	d := setUp(program)
	d.tell()
	program.Close()
	if len(d.wrong) > 0 {
		for _, it := range d.wrong {
			fmt.Println("WRONG:", it)
		}
		os.Exit(1)
	}
	fmt.Println("All as it should be.")
}

// demo is the stage: servers, the client that balances, and what was seen so far.
type demo struct {
	owner   *harness.Program
	target  *harness.Target
	servers []*harness.Server
	slow    *harness.Server // all of it goes through a slow line
	dying   *harness.Server
	process *harness.Process
	control string // address of the Clash API
	clients map[string]*harness.Client
	acts    []act
	wrong   []string
}

// act is a part of the play: how many connections each server carried, by balancer, and how many failed.
type act struct {
	title   string
	carried map[string]map[string]int
	failed  map[string]int
}

func setUp(owner *harness.Program) *demo {
	d := &demo{owner: owner, target: harness.StartTarget(owner), clients: make(map[string]*harness.Client)}
	for i, protocol := range []string{harness.Shadowsocks, harness.VLESS, harness.Trojan, harness.Hysteria2} {
		d.servers = append(d.servers, harness.StartServer(owner, protocol, i+2))
	}
	d.dying, d.slow = d.servers[0], d.servers[2]
	var tags []string
	var outbounds []harness.JSON
	for _, server := range d.servers {
		outbound := server.Outbound()
		if server == d.slow {
			outbound["server_port"] = slowLine(owner, server.Port, slowness)
		}
		tags = append(tags, server.Tag)
		outbounds = append(outbounds, outbound)
	}
	port, controlPort := harness.FreePort(owner), harness.FreePort(owner)
	d.control = fmt.Sprintf("127.0.0.1:%d", controlPort)
	var users, rules []harness.JSON
	for _, balancer := range []struct{ tag, strategy string }{{spread, "round-robin"}, {fastest, "lowest-delay"}} {
		outbounds = append(outbounds, harness.JSON{
			"type": "balancer", "tag": balancer.tag, "outbounds": tags, "strategy": balancer.strategy,
		})
		users = append(users, harness.JSON{"username": balancer.tag, "password": "demo"})
		rules = append(rules, harness.JSON{"auth_user": []string{balancer.tag}, "outbound": balancer.tag})
		client := harness.NewClient(port)
		client.User = url.UserPassword(balancer.tag, "demo")
		d.clients[balancer.tag] = client
	}
	d.process = harness.StartReady(owner, harness.JSON{
		"log":       harness.JSON{"level": "info"},
		"inbounds":  []harness.JSON{{"type": "mixed", "listen": "127.0.0.1", "listen_port": port, "users": users}},
		"outbounds": outbounds,
		"route":     harness.JSON{"rules": rules},
		"experimental": harness.JSON{
			"clash_api":  harness.JSON{"external_controller": d.control},
			"monitoring": harness.JSON{"urls": []string{d.target.TestURL}, "interval": "2s"},
		},
	})
	return d
}

// tell plays the three acts and shows them.
func (d *demo) tell() {
	for _, server := range d.servers {
		d.awaitChange(0, server, "is now up")
	}
	d.target.AwaitRounds(d.owner, 1, d.dying.Address) // so that every choice rests on a whole round
	states := d.states()
	choice := states[fastest].Now
	d.play("all four", 50)
	d.expectEqualShares(d.acts[0], d.servers...)
	d.expectAll(d.acts[0], choice)
	d.showStates(states)

	mark := d.process.Log.Mark()
	d.dying.Stop()
	d.play("one died", 25)
	d.awaitChange(mark, d.dying, "is now down")
	d.expectNone(d.acts[1], d.dying)
	d.showStates(d.states())

	back := d.process.Log.Mark()
	d.dying.Start()
	d.awaitChange(back, d.dying, "is now up")
	d.target.AwaitRounds(d.owner, 1, d.dying.Address)
	d.play("it is back", 25)
	d.expectEqualShares(d.acts[2], d.servers...)
	d.showStates(d.states())

	d.showShares()
	fmt.Println("\nWhat the client said when one died and came back:")
	for _, line := range d.process.Log.Find(mark, "outbound/balancer[", "member") {
		_, said, _ := strings.Cut(line, "outbound/")
		fmt.Println("  ", said)
	}
	fmt.Println()
}

// play makes as many requests through each balancer.
func (d *demo) play(title string, requests int) {
	it := act{title, map[string]map[string]int{spread: {}, fastest: {}}, make(map[string]int)}
	for _, balancer := range []string{spread, fastest} {
		for range requests {
			source, err := d.clients[balancer].Get(d.target.URL)
			if err != nil {
				it.failed[balancer]++
				continue
			}
			it.carried[balancer][source]++
		}
	}
	d.acts = append(d.acts, it)
}

// awaitChange waits until both balancers told a change of a member.
func (d *demo) awaitChange(mark int, server *harness.Server, change string) {
	for _, balancer := range []string{spread, fastest} {
		d.process.Await(mark, "balancer["+balancer+"]", server.Tag, change)
	}
}

func (d *demo) mistake(format string, arguments ...any) {
	d.wrong = append(d.wrong, fmt.Sprintf(format, arguments...))
}

// expectEqualShares: round-robin gave all servers as many connections, but for one, and the slow one none (S3.2, S4.1).
func (d *demo) expectEqualShares(it act, servers ...*harness.Server) {
	var counts []int
	for _, server := range servers {
		if count := it.carried[spread][server.Address]; server != d.slow {
			counts = append(counts, count)
		} else if count > 0 {
			d.mistake("%s: %d connections of %s went to the slow server", it.title, count, spread)
		}
	}
	if slices.Max(counts)-slices.Min(counts) > 1 {
		d.mistake("%s: the shares of %s are not equal: %v", it.title, spread, counts)
	}
	for balancer, count := range it.failed {
		d.mistake("%s: %d connections of %s failed", it.title, count, balancer)
	}
}

// expectAll: lowest-delay sent everything through its choice (S3.4), which is not the slow server.
func (d *demo) expectAll(it act, choice string) {
	if choice == d.slow.Tag {
		d.mistake("%s: %s chose the slow server", it.title, fastest)
	}
	for _, server := range d.servers {
		if count := it.carried[fastest][server.Address]; count > 0 && server.Tag != choice {
			d.mistake("%s: %d connections of %s went to %s instead of %s", it.title, count, fastest, server.Tag, choice)
		}
	}
}

// expectNone: the dead server carried nothing, and only the connection that found it dead failed (S5.2, S5.3).
func (d *demo) expectNone(it act, dead *harness.Server) {
	for _, balancer := range []string{spread, fastest} {
		if count := it.carried[balancer][dead.Address]; count > 0 {
			d.mistake("%s: %d connections of %s went to the dead server", it.title, count, balancer)
		}
		if it.failed[balancer] > 2 {
			d.mistake("%s: %d connections of %s failed", it.title, it.failed[balancer], balancer)
		}
	}
}
