package balancer

import (
	"sync"
	"testing"
	"time"

	"tarazu/option"

	"github.com/sagernet/sing/common/json/badoption"
)

func sticking(tags ...string) option.BalancerOutboundOptions {
	return option.BalancerOutboundOptions{Strategy: option.StrategyStickySessions, Outbounds: tags}
}

func TestStickySessions_S4_3_RandomThenRemembered(t *testing.T) {
	tell(t, sticking("a", "b", "c"), nil, func(s *story) {
		s.settled(map[string]uint16{"a": 10, "b": 20, "c": 900}) // c is not alive
		counts := make(map[string]int)
		for key := range uint64(400) {
			member := s.pick(networkTCP, key*keyStep)
			counts[member]++
			for range 3 {
				if again := s.pick(networkTCP, key*keyStep); again != member {
					t.Fatalf("a key moves from %s to %s", member, again)
				}
			}
		}
		if counts["c"] > 0 || counts["a"] < 150 || counts["b"] < 150 {
			t.Fatal(counts)
		}
	})
}

func TestStickySessions_S4_3_AThousandKeys(t *testing.T) {
	tell(t, sticking("a", "b"), nil, func(s *story) {
		s.settled(map[string]uint16{"a": 10, "b": 20})
		sessions := s.group.config.strategy.(stickySessions).sessions
		for key := range uint64(maxSessions) {
			s.pick(networkTCP, key)
			s.pass(time.Nanosecond)
		}
		s.pick(networkTCP, 0) // now 1 is the least recently used
		s.pick(networkTCP, maxSessions)
		for key, expected := range map[uint64]bool{0: true, 1: false, 2: true, maxSessions: true} {
			if known := sessions.find(key) != nil; known != expected {
				t.Errorf("key %d is remembered: %v", key, known)
			}
		}
		if sessions.count != maxSessions {
			t.Errorf("%d keys", sessions.count)
		}
	})
}

func TestStickySessions_S4_3_ForgottenAfterTTL(t *testing.T) {
	options := sticking("a", "b")
	options.TTL = badoption.Duration(time.Minute)
	tell(t, options, nil, func(s *story) {
		s.settled(map[string]uint16{"a": 10, "b": 20})
		sessions := s.group.config.strategy.(stickySessions).sessions
		s.pick(networkTCP, 7)
		s.pass(time.Minute) // since its last use, to the nanosecond
		s.pick(networkTCP, 7)
		s.pass(time.Minute)
		if _, known := sessions.recall(7); !known {
			t.Fatal("forgotten although it was used")
		}
		s.pass(time.Minute + time.Nanosecond)
		if _, known := sessions.recall(7); known {
			t.Fatal("remembered for longer than its time")
		}
	})
	tell(t, sticking("a", "b"), nil, func(s *story) { // 0 is for ever
		s.settled(map[string]uint16{"a": 10, "b": 20})
		member := s.pick(networkTCP, 7)
		s.pass(1000 * time.Hour)
		if again := s.pick(networkTCP, 7); again != member {
			t.Fatal(again)
		}
	})
}

func TestStickySessions_S4_3_ReplacementIsRemembered(t *testing.T) {
	options := sticking("a", "b", "c")
	options.MaxRetry = 2
	tell(t, options, nil, func(s *story) {
		s.settled(map[string]uint16{"a": 10, "b": 20, "c": 30})
		for key := range uint64(100) {
			key *= keyStep
			member := s.pick(networkTCP, key)
			s.down(member)
			s.window()
			heir := s.pick(networkTCP, key)
			s.up(member, 10)
			s.window()
			if again := s.pick(networkTCP, key); heir == member || again != heir {
				t.Fatalf("%s was replaced by %s, and then it was %s", member, heir, again)
			}
		}
	})
}

// FIELD case 48: ten members, only the seventh alive; then none; then all.
func TestStickySessions_Field48_KeysSpreadAgain(t *testing.T) {
	tags := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}
	tell(t, sticking(tags...), nil, func(s *story) {
		s.settled(map[string]uint16{"g": 10})
		for key := range uint64(500) {
			if member := s.pick(networkTCP, key*keyStep); member != "g" {
				t.Fatalf("a key went to %s", member)
			}
		}
		s.down("g")
		s.window()
		for key := range uint64(500) {
			s.pick(networkTCP, (1000+key)*keyStep)
		}
		for _, tag := range tags {
			s.up(tag, 50)
		}
		s.window()
		counts := make(map[string]int)
		for key := range uint64(500) {
			counts[s.pick(networkTCP, (1000+key)*keyStep)]++
		}
		for _, tag := range tags {
			if counts[tag] < 25 || counts[tag] > 90 {
				t.Fatal(counts)
			}
		}
	})
}

func TestStickySessions_S4_3_TCPAndUDPShare(t *testing.T) {
	tell(t, sticking("a!", "b", "c"), nil, func(s *story) {
		s.settled(map[string]uint16{"a": 10, "b": 20, "c": 30})
		apart := 0
		for key := range uint64(300) {
			key *= keyStep
			udpFirst := key%2 == 0
			var tcp, udp string
			if udpFirst {
				udp, tcp = s.pick(networkUDP, key), s.pick(networkTCP, key)
			} else {
				tcp, udp = s.pick(networkTCP, key), s.pick(networkUDP, key)
			}
			switch {
			case udp == "a":
				t.Fatal("UDP goes to a member that does not carry it")
			case tcp == "a":
				apart++
			case tcp != udp:
				t.Fatalf("TCP %s, UDP %s", tcp, udp)
			}
			if tcp != s.pick(networkTCP, key) || udp != s.pick(networkUDP, key) {
				t.Fatal("one moves the other")
			}
		}
		if apart == 0 {
			t.Fatal("no key was with the member that carries no UDP")
		}
	})
}

func TestStickySessions_S4_3_FirstConnectionsAtOnceShare(t *testing.T) {
	tell(t, sticking("a", "b", "c", "d"), nil, func(s *story) {
		s.settled(map[string]uint16{"a": 10, "b": 20, "c": 30, "d": 40})
		for key := range uint64(50) {
			members := make([]string, 20)
			var opens sync.WaitGroup
			for i := range members {
				opens.Go(func() { members[i] = s.pick(networkTCP, key*keyStep) })
			}
			opens.Wait()
			for _, member := range members {
				if member != members[0] {
					t.Fatalf("first connections of one key went to %v", members)
				}
			}
		}
	})
}
