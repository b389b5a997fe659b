package test

import (
	"strings"
	"testing"
	"time"

	"tarazu/test/harness"
)

// A member turns into a tarpit, in SOCKS, in TLS, before or within the HTTP headers: its test ends by the timeout, rounds
// go on, no more than its one test is open there, and traffic is elsewhere within interval and timeout. (A test asks for
// headers only, so there is no body to stall in.)
func TestField1_Tarpit(t *testing.T) {
	t.Parallel()
	target := harness.StartTarget(t)
	trojan := harness.StartServer(t, harness.Trojan, 20)
	behindGate := func(t *testing.T) (*harness.Faulty, object) {
		gate := harness.StartGate(t, trojan.Port)
		outbound := trojan.Outbound()
		outbound["tag"], outbound["server_port"] = "bad", gate.Port
		return gate, outbound
	}
	asSOCKS := func(t *testing.T) (*harness.Faulty, object) {
		faulty := harness.StartFaulty(t, 21)
		return faulty, faulty.Outbound("bad")
	}
	for _, strategy := range strategies {
		for _, story := range []struct {
			name  string
			start func(t *testing.T) (*harness.Faulty, object)
			mode  harness.Mode
		}{
			{"in SOCKS", asSOCKS, harness.Tarpit},
			{"in TLS", behindGate, harness.Tarpit},
			{"before the headers", asSOCKS, harness.Silent},
			{"within the headers", asSOCKS, harness.Stall},
		} {
			t.Run(strategy+" "+story.name, func(t *testing.T) {
				t.Parallel()
				good := harness.StartFaulty(t, 2)
				bad, outbound := story.start(t)
				port := harness.FreePort(t)
				process := harness.StartReady(t, harness.Monitored(
					harness.Configuration(port, object{"strategy": strategy, "delay_acceptable_ratio": wide}, outbound, good.Outbound("good")),
					harness.Monitoring(target, object{"url_test_timeout": "500ms"}),
				))
				client := harness.NewClient(port)
				awaitUp(process, 0, "good", "bad")

				bad.Become(story.mode)
				turned := time.Now()
				line := awaitDown(process, 0, "bad")
				const busyMachine = 2 * time.Second
				if passed := time.Since(turned); passed > time.Second+500*time.Millisecond+busyMachine {
					t.Errorf("found down after %v, not within interval and timeout", passed)
				}
				if !strings.Contains(line, "no answer within 500ms") {
					t.Errorf("the reason is not the timeout: %s", line)
				}
				expectShares(t, "tarpit", client.Shares(t, target.URL, 10), equally(10, good.Address))
				before := bad.Connections()
				target.AwaitRounds(t, 2, good.Address)
				harness.Eventually(t, soon, "the tarpit is tested on", func() bool { return bad.Connections() > before })
				if bad.Peak() > 1 {
					t.Errorf("%d tests of the tarpit were open at a time", bad.Peak())
				}
			})
		}
	}
}
