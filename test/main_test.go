// Package test has the black-box tests: the real program, real protocol servers, real time. What a test is about is in
// its name: a rule of the specification (S4_1) or a numbered case that people reported (Field11).
package test

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"tarazu/test/harness"
)

func TestMain(m *testing.M) {
	if inbound := os.Getenv(clientInbound); inbound != "" {
		os.Exit(beClient(inbound))
	}
	flag.Parse()
	if !isGiven("test.parallel") {
		// These tests wait more than they compute.
		_ = flag.Set("test.parallel", "8")
	}
	status := m.Run()
	harness.RemoveBinary()
	os.Exit(status)
}

func isGiven(name string) (given bool) {
	flag.Visit(func(it *flag.Flag) { given = given || it.Name == name })
	return given
}

// strategies are those that every-strategy tests go through.
var strategies = []string{
	"round-robin", "lowest-delay", "consistent-hashing", "sticky-sessions", "pool", "failover", "least-connections",
}

// soon is the deadline of what takes milliseconds on an idle machine.
const soon = 10 * time.Second

// wide accepts delays as they come on a busy machine, where a test is not about them.
const wide = 100

type object = harness.JSON

// startMembers runs faulty servers, the first of them at harness.Address(2), and returns their outbounds, tags and
// addresses too.
func startMembers(t *testing.T, count int) (servers []*harness.Faulty, outbounds []object, tags, sources []string) {
	t.Helper()
	for i := range count {
		server, tag := harness.StartFaulty(t, 2+i), fmt.Sprint("member-", i)
		servers, outbounds = append(servers, server), append(outbounds, server.Outbound(tag))
		tags, sources = append(tags, tag), append(sources, server.Address)
	}
	return servers, outbounds, tags, sources
}

// awaitUp waits until the balancer has found members to be up.
func awaitUp(process *harness.Process, mark int, tags ...string) {
	for _, tag := range tags {
		process.Await(mark, "member "+tag+" is now up")
	}
}

// awaitDown waits until the balancer has found a member to be down, and returns the line.
func awaitDown(process *harness.Process, mark int, tag string) string {
	return process.Await(mark, "member "+tag+" is now down")
}

// awaitSilence waits until the monitor has found that nobody answers: that is said once, not a line a member (S2.5a).
func awaitSilence(process *harness.Process, mark int) string {
	return process.Await(mark, "no member answers; is the network up?")
}

// expectShares fails unless connections were spread exactly like this.
func expectShares(t *testing.T, what string, found, expected map[string]int) {
	t.Helper()
	for source, count := range expected {
		if found[source] != count {
			t.Errorf("%s: %s has %d connections, not %d: %v", what, source, found[source], count, found)
		}
	}
	for source, count := range found {
		if expected[source] == 0 && count != 0 {
			t.Errorf("%s: %s has %d connections, not 0", what, source, count)
		}
	}
}

// equally is a share of the same size for each source.
func equally(total int, sources ...string) map[string]int {
	shares := make(map[string]int)
	for _, source := range sources {
		shares[source] = total / len(sources)
	}
	return shares
}
