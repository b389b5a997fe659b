package balancer

import (
	"testing"
	"time"

	"tarazu/option"
)

func failingOver(tags ...string) option.BalancerOutboundOptions {
	return option.BalancerOutboundOptions{Strategy: option.StrategyFailover, Outbounds: tags}
}

func TestFailover_S4_6_HealthyUntilTheFirstTest(t *testing.T) {
	tell(t, failingOver("a", "b"), map[string]uint16{"b": 10}, func(s *story) {
		s.expect("aaa")
		s.expectShown("a")
		s.boot()
		s.up("b", 10) // speed does not count, and no result is no failure
		s.window()
		s.expect("aaa")
	})
}

func TestFailover_S4_6_DownAndBackInOrder(t *testing.T) {
	tell(t, failingOver("a", "b", "c"), nil, func(s *story) {
		s.settled(map[string]uint16{"a": 5000, "b": 100, "c": 10})
		s.expect("aaa") // far beyond what is acceptable, but it answers
		s.down("a")
		s.expect("bbb") // at once
		s.expectDid("a down", "a>b: member down", "close a [true true]: S6.1a")
		s.window()
		s.down("b")
		s.expect("ccc")
		s.window()
		s.up("b", 100)
		s.window()
		s.expect("bbb")
		s.up("a", 5000)
		s.window()
		s.expect("aaa")
		s.expectDid("b down", "b>c: member down", "close b [true true]: S6.1a", "b up", "c>b: recovered", "a up", "b>a: recovered")
	})
}

func TestFailover_S4_6_AllDown(t *testing.T) {
	tell(t, failingOver("a", "b"), nil, func(s *story) {
		s.settled(nil)
		s.expect("aaa")
		s.expectShown("a")
		s.up("b", 10)
		s.window()
		s.expect("bbb")
	})
}

func TestFailover_S3_3_OnlyWhoCarriesUDP(t *testing.T) {
	tell(t, failingOver("a!", "b", "c"), nil, func(s *story) {
		s.settled(map[string]uint16{"a": 10, "b": 20, "c": 30})
		s.expect("aa")
		if found := s.picks(networkUDP, 2); found != "bb" {
			t.Fatal(found)
		}
		s.down("b")
		if found := s.picks(networkUDP, 2); found != "cc" {
			t.Fatal(found)
		}
		s.expect("aa")
	})
}

// Unlike the choice for speed, a recovery waits for no round's end (S4.6).
func TestFailover_S4_6_RecoversDuringARound(t *testing.T) {
	tell(t, failingOver("a", "b"), nil, func(s *story) {
		s.settled(map[string]uint16{"b": 20})
		s.expect("bb")
		s.pass(5 * time.Minute)
		s.round(true)
		s.up("a", 10)
		s.window()
		s.expect("aa")
	})
}
