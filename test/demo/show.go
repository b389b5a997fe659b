package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"text/tabwriter"
)

// state is what the Clash API says of an outbound.
type state struct {
	Now     string
	History []struct{ Delay int }
}

func (s state) delay() string {
	if len(s.History) == 0 || s.History[len(s.History)-1].Delay == 0 {
		return "–"
	}
	return fmt.Sprint(s.History[len(s.History)-1].Delay, " ms")
}

// states asks the client for what any dashboard would show.
func (d *demo) states() map[string]state {
	response, err := http.Get("http://" + d.control + "/proxies")
	if err != nil {
		d.owner.Fatalf("ask the client for its outbounds: %v", err)
	}
	defer response.Body.Close()
	var answer struct{ Proxies map[string]state }
	if err = json.NewDecoder(response.Body).Decode(&answer); err != nil {
		d.owner.Fatalf("read the client's outbounds: %v", err)
	}
	return answer.Proxies
}

// showStates prints the last act and the state after it.
func (d *demo) showStates(states map[string]state) {
	fmt.Printf("\n%s; %s now uses %s\n", d.acts[len(d.acts)-1].title, fastest, states[fastest].Now)
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "  member\tdelay\tstate")
	for _, server := range d.servers {
		it := states[server.Tag]
		word := "up"
		switch {
		case it.delay() == "–":
			word = "down"
		case server == d.slow:
			word = "up, too slow to share"
		}
		fmt.Fprintf(table, "  %s\t%s\t%s\n", server.Tag, it.delay(), word)
	}
	_ = table.Flush()
}

// showShares prints who carried what in every act.
func (d *demo) showShares() {
	for _, balancer := range []struct{ tag, strategy string }{{spread, "round-robin"}, {fastest, "lowest-delay"}} {
		fmt.Printf("\n%s (%s)\n", balancer.tag, balancer.strategy)
		table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
		fmt.Fprint(table, "  member")
		for _, it := range d.acts {
			fmt.Fprintf(table, "\t%s", it.title)
		}
		fmt.Fprintln(table)
		for _, server := range d.servers {
			fmt.Fprintf(table, "  %s", server.Tag)
			for _, it := range d.acts {
				fmt.Fprintf(table, "\t%s", share(it.carried[balancer.tag][server.Address], it.requests(balancer.tag)))
			}
			fmt.Fprintln(table)
		}
		fmt.Fprint(table, "  failed")
		for _, it := range d.acts {
			fmt.Fprintf(table, "\t%3d", it.failed[balancer.tag])
		}
		fmt.Fprintln(table)
		_ = table.Flush()
	}
}

func (a act) requests(balancer string) int {
	total := a.failed[balancer]
	for _, count := range a.carried[balancer] {
		total += count
	}
	return total
}

// share is a count, its part of the whole, and a bar.
func share(count, total int) string {
	part := float64(count) / float64(max(total, 1))
	return fmt.Sprintf("%3d  %3.0f %%  %-10s", count, 100*part, strings.Repeat("█", int(10*part+0.5)))
}
