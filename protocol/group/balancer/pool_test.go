package balancer

import (
	"slices"
	"testing"
	"time"

	"tarazu/option"

	"github.com/sagernet/sing/common/json/badoption"
)

func pooled(slots int, tags ...string) option.BalancerOutboundOptions {
	return option.BalancerOutboundOptions{Strategy: option.StrategyPool, Pool: slots, Outbounds: tags}
}

// holders are who has the slots, in their order.
func (s *story) holders() (members string) {
	for _, index := range s.group.current.Load().pickers[networkTCP].(*slotPicker).holders {
		members += s.tags[index]
	}
	return members
}

func (s *story) expectHolders(members string) {
	s.t.Helper()
	if found := s.holders(); found != members {
		s.t.Fatalf("at %v: slots are held by %s, not by %s", time.Since(s.start), found, members)
	}
}

func TestPool_S4_4a_Start(t *testing.T) {
	tell(t, pooled(2, "a", "b", "c", "d"), nil, func(s *story) { s.expectHolders("ab") })
	tell(t, pooled(2, "a", "b", "c", "d"), map[string]uint16{"c": 90, "d": 10}, func(s *story) { s.expectHolders("cd") })
	tell(t, pooled(3, "a", "b", "c", "d"), map[string]uint16{"d": 10}, func(s *story) { s.expectHolders("dab") })
	tell(t, pooled(0, "a", "b", "c", "d"), nil, func(s *story) { s.expectHolders("abc") })
	tell(t, pooled(9, "a", "b"), nil, func(s *story) { s.expectHolders("ab") })
}

func TestPool_S4_4b_KeepsItsSlotWhileItAnswers(t *testing.T) {
	tell(t, pooled(2, "a", "b", "c"), nil, func(s *story) {
		s.settled(map[string]uint16{"a": 5000, "b": 10, "c": 10})
		s.expectHolders("ab") // far beyond what is acceptable, but it answers
		before := s.table()
		s.down("b")
		s.window()
		s.expectHolders("ac")
		for i, member := range s.table() {
			if (before[i] == "a") != (member == "a") {
				t.Fatal("a connection of another slot moves")
			}
		}
		s.up("b", 10)
		s.window()
		s.expectHolders("ac") // the successor keeps it
	})
}

func TestPool_S4_4c_SkippedWhileThereIsNobody(t *testing.T) {
	tell(t, pooled(3, "a", "b", "c"), nil, func(s *story) {
		s.settled(alike(s.tags))
		before := s.table()
		s.down("b")
		s.window()
		during := s.table()
		heirs := make(map[string]int)
		for i, member := range during {
			if before[i] != "b" && member != before[i] {
				t.Fatal("a connection of a healthy slot moves")
			}
			if before[i] == "b" {
				heirs[member]++
			}
		}
		if heirs["b"] > 0 || heirs["a"] < 40 || heirs["c"] < 40 {
			t.Fatalf("the skipped slot's keys go to %v", heirs)
		}
		if !slices.Equal(s.table(), during) {
			t.Fatal("they do not spread the same way each time")
		}
		s.up("b", 50)
		s.window()
		if !slices.Equal(s.table(), before) {
			t.Fatal("they do not return")
		}
	})
}

// FIELD case 2: a test may hang for long; meanwhile only who is known to answer has connections.
func TestPool_Field2_UntestedHolders(t *testing.T) {
	tell(t, pooled(3, "dead", "good", "tarpit"), nil, func(s *story) {
		s.boot()
		s.down("dead")
		s.up("good", 10)
		s.window()
		for _, member := range s.table() {
			if member != "good" {
				t.Fatal(member)
			}
		}
	})
	tell(t, pooled(1, "a", "b", "c"), nil, func(s *story) {
		s.boot()
		s.expectHolders("a")
		s.up("c", 10)
		s.window()
		s.expectHolders("c")
		s.up("a", 10)
		s.window()
		s.expectHolders("c")
	})
	tell(t, pooled(2, "a", "b", "c"), nil, func(s *story) {
		s.boot()
		s.up("b", 10)
		s.up("c", 10)
		s.window()
		s.expectHolders("ab") // a may answer yet
		s.up("a", 10)
		s.window()
		counts := make(map[string]int)
		for _, member := range s.table() {
			counts[member]++
		}
		if counts["a"] < 200 || counts["b"] < 200 {
			t.Fatal(counts)
		}
	})
}

func TestPool_S4_4d_SpeedOnlyWithTolerance(t *testing.T) {
	tell(t, pooled(1, "a", "b"), nil, func(s *story) {
		s.settled(map[string]uint16{"a": 1000, "b": 10})
		s.pass(time.Hour)
		s.expectHolders("a")
	})
	for _, it := range []struct {
		holder, outsider uint16
		holders          string
	}{{150, 100, "a"}, {151, 100, "b"}} {
		options := pooled(1, "a", "b")
		options.Tolerance = new(50)
		tell(t, options, nil, func(s *story) {
			s.settled(map[string]uint16{"a": it.holder, "b": it.outsider})
			s.expectHolders(it.holders)
		})
	}
}

func TestPool_S1_1_Cooldown(t *testing.T) {
	options := pooled(2, "a", "b", "c", "d")
	options.Tolerance, options.Cooldown = new(50), new(badoption.Duration(time.Minute))
	tell(t, options, nil, func(s *story) {
		s.boot()
		s.up("a", 900)
		s.up("b", 800)
		s.up("c", 10)
		s.up("d", 20)
		s.roundEnd()
		s.expectHolders("cb") // the slowest first, one at a time
		s.pass(time.Minute - time.Millisecond)
		s.expectHolders("cb")
		s.pass(time.Millisecond)
		s.expectHolders("cd")
	})
}

func TestPool_S4_4e_RefillingClosesNothing(t *testing.T) {
	options := pooled(1, "a", "b", "c")
	options.Tolerance = new(0)
	tell(t, options, nil, func(s *story) {
		s.settled(map[string]uint16{"a": 100, "b": 200, "c": 300})
		s.at(time.Minute)
		s.did() // the one clean-up after the start
		s.up("b", 10)
		s.window()
		s.expectHolders("b")
		s.expectDid()
		s.down("b")
		s.window()
		s.expectHolders("a")
		s.expectDid("b down", "close b [true true]: S6.1a") // it is dead; its slot has nothing to do with it
	})
}

func TestPool_S4_4f_Turns(t *testing.T) {
	options := pooled(3, "a", "b", "c", "d")
	options.StickyHash = []string{option.StickyNone}
	tell(t, options, nil, func(s *story) {
		s.expect("abcabc")
		s.settled(map[string]uint16{"a": 10, "b": 20, "c": 30})
		s.expect("abca")
		s.down("b")
		s.window()
		expectShares(t, s.picks(networkTCP, 10), map[rune]int{'a': 5, 'c': 5})
	})
}

func TestPool_S4_4g_NoHealthySlot(t *testing.T) {
	tell(t, pooled(2, "a", "b", "c"), nil, func(s *story) {
		s.settled(alike(s.tags))
		before := s.table()
		for _, tag := range []string{"c", "a", "b"} {
			s.down(tag)
		}
		s.window()
		if !slices.Equal(s.table(), before) {
			t.Fatal("it is not the hashed slot's holder")
		}
	})
}
