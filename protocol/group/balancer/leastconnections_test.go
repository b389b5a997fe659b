package balancer

import (
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"tarazu/option"

	"github.com/sagernet/sing/common/json/badoption"
)

func leastLoaded(tags ...string) option.BalancerOutboundOptions {
	return option.BalancerOutboundOptions{Strategy: option.StrategyLeastConnections, Outbounds: tags}
}

// end closes a connection of a member.
func (s *story) end(tag string) {
	s.loads[slices.Index(s.tags, tag)].open.Add(-1)
}

// expectOpen checks how many connections members have open.
func (s *story) expectOpen(expected map[string]int64) {
	s.t.Helper()
	open := make(map[string]int64)
	for i, tag := range s.tags {
		open[tag] = s.loads[i].open.Load()
	}
	if !maps.Equal(open, expected) {
		s.t.Fatalf("open are %v, not %v", open, expected)
	}
}

func TestLeastConnections_S4_7_FewestFirst(t *testing.T) {
	tell(t, leastLoaded("a", "b", "c"), nil, func(s *story) {
		s.settled(map[string]uint16{"a": 10, "b": 20, "c": 30})
		expectShares(t, s.picks(networkTCP, 3), map[rune]int{'a': 1, 'b': 1, 'c': 1})
		s.end("b")
		s.expect("b")
		s.end("c")
		s.end("c") // as if it had fewer than the others by two
		s.expect("cc")
		s.expectOpen(map[string]int64{"a": 1, "b": 1, "c": 1})
		if found := s.picks(networkUDP, 1) + s.picks(networkTCP, 2); len(shares(found)) != 3 {
			t.Fatal(found) // TCP and UDP count together
		}
	})
}

func TestLeastConnections_S4_7_DividedByWeight(t *testing.T) {
	options := leastLoaded("a", "b")
	options.Weights = map[string]int{"a": 3}
	tell(t, options, nil, func(s *story) {
		s.settled(map[string]uint16{"a": 10, "b": 20})
		s.picks(networkTCP, 400)
		s.expectOpen(map[string]int64{"a": 300, "b": 100})
	})
}

// FIELD case 49: connections that are closed before the next opens.
func TestLeastConnections_Field49_TiesGoInTurn(t *testing.T) {
	tell(t, leastLoaded("a", "b", "c", "d", "e"), nil, func(s *story) {
		s.settled(map[string]uint16{"a": 10, "b": 20, "c": 30, "d": 40, "e": 50})
		counts := make(map[string]int)
		for i := range 100 {
			member := s.picks(networkTCP, 1)
			counts[member]++
			s.end(member)
			if i%7 == 0 { // a decision moves no turn
				s.up("e", 50)
				s.window()
			}
		}
		if !maps.Equal(counts, map[string]int{"a": 20, "b": 20, "c": 20, "d": 20, "e": 20}) {
			t.Fatal(counts)
		}
	})
}

func TestLeastConnections_S4_7_Storm(t *testing.T) {
	var tags []string
	delays := make(map[string]uint16)
	for i := range 100 {
		tags = append(tags, strconv.Itoa(i))
		delays[strconv.Itoa(i)] = 50
	}
	tell(t, leastLoaded(tags...), nil, func(s *story) {
		s.settled(delays)
		var opens sync.WaitGroup
		for range 1000 {
			opens.Go(func() {
				s.pick(networkTCP, 0)
				for i := range s.loads {
					// However they race, no member gets more than its share of all.
					if open := s.loads[i].open.Load(); open > 10 {
						s.t.Errorf("a member has %d of 1000 connections over 100 members", open)
					}
				}
			})
		}
		opens.Wait()
		for i := range s.loads {
			if open := s.loads[i].open.Load(); open != 10 {
				t.Errorf("member %d has %d of 1000 connections", i, open)
			}
		}
	})
}

func TestLeastConnections_S4_7_SuspectIsPassedOver(t *testing.T) {
	tell(t, leastLoaded("a", "b"), nil, func(s *story) {
		s.settled(map[string]uint16{"a": 10, "b": 20})
		s.suspect("a", false)
		s.expect("bbbb") // although a has none open
		s.suspect("b", false)
		s.expect("aaaa") // nobody else is there: both count again
		s.suspect("a", true)
		s.suspect("b", true)
	})
}

func TestLeastConnections_S4_7_OnlyAlive(t *testing.T) {
	tell(t, leastLoaded("a", "b", "slow"), nil, func(s *story) {
		s.settled(map[string]uint16{"a": 10, "b": 20, "slow": 900})
		expectShares(t, s.picks(networkTCP, 4), map[rune]int{'a': 2, 'b': 2})
		s.down("a")
		s.down("b")
		s.window()
		s.expectShown("slow")
		if found := s.picks(networkTCP, 1); found != "slow" {
			t.Fatal(found)
		}
		s.down("slow")
		s.window()
		if found := s.picks(networkTCP, 1); found != "slow" { // none alive: all count, and it has the fewest
			t.Fatal(found)
		}
	})
}

func TestLeastConnections_S1_1_SlowStart(t *testing.T) {
	options := leastLoaded("a", "b")
	options.SlowStart = badoption.Duration(90 * time.Second)
	tell(t, options, nil, func(s *story) {
		s.settled(map[string]uint16{"a": 10, "b": 10})
		s.down("b")
		s.window()
		s.up("b", 10)
		back := time.Now()
		for tenths := int64(1); tenths <= 10; tenths++ {
			s.pass(time.Until(back.Add(time.Duration(tenths-1) * 10 * time.Second)))
			for i := range s.loads {
				s.loads[i].open.Store(0)
			}
			s.picks(networkTCP, int(10*(10+tenths)))
			s.expectOpen(map[string]int64{"a": 100, "b": 10 * tenths})
		}
	})
}
