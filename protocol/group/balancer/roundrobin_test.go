package balancer

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"tarazu/adapter"
	"tarazu/option"

	"github.com/sagernet/sing/common/json/badoption"
)

func rotating(tags ...string) option.BalancerOutboundOptions {
	return option.BalancerOutboundOptions{Outbounds: tags}
}

// shares counts the members of connections.
func shares(members string) map[rune]int {
	counts := make(map[rune]int)
	for _, member := range members {
		counts[member]++
	}
	return counts
}

func expectShares(t *testing.T, members string, expected map[rune]int) {
	t.Helper()
	if found := shares(members); !maps.Equal(found, expected) {
		t.Fatalf("shares %v, not %v, of %s", found, expected, members)
	}
}

func TestRoundRobin_S4_1_AllInOrderBeforeAnyResult(t *testing.T) {
	tell(t, rotating("a", "b", "c"), nil, func(s *story) {
		s.expect("abcabcab")
	})
}

func TestRoundRobin_S4_1_AliveInOrderOfDelay(t *testing.T) {
	tell(t, rotating("a", "b", "c", "d"), nil, func(s *story) {
		// d is more than twice as slow as the fastest (and as 100 ms): not alive (S3.2).
		s.settled(map[string]uint16{"a": 180, "b": 60, "c": 120, "d": 201})
		s.expect("bcabcabca")
	})
}

func TestRoundRobin_S4_1_NobodyAlive(t *testing.T) {
	tell(t, rotating("a", "b", "c"), nil, func(s *story) {
		s.settled(nil)
		s.expect("abcabc")
	})
}

func TestRoundRobin_S4_1_DeadShareGoesToAllOthers(t *testing.T) {
	tell(t, rotating("a", "b", "c", "d"), nil, func(s *story) {
		s.settled(map[string]uint16{"a": 10, "b": 20, "c": 30, "d": 40})
		s.expect("abcdab")
		s.down("b")
		expectShares(t, s.picks(networkTCP, 300), map[rune]int{'a': 100, 'c': 100, 'd': 100})
	})
}

func TestRoundRobin_S1_3_TwiceNamedCountsTwice(t *testing.T) {
	tell(t, rotating("a", "a", "b"), nil, func(s *story) {
		s.settled(map[string]uint16{"a": 10, "b": 20})
		expectShares(t, s.picks(networkTCP, 300), map[rune]int{'a': 200, 'b': 100})
	})
}

// FIELD case 42: the state changes before every connection.
func TestRoundRobin_Field42_FlappingNeverRestartsTheTurn(t *testing.T) {
	tell(t, rotating("a", "b", "c", "d"), nil, func(s *story) {
		s.settled(map[string]uint16{"a": 40, "b": 50, "c": 60, "d": 70})
		var members strings.Builder
		for i := range 300 {
			if i%2 == 0 {
				s.down("d")
			} else {
				s.up("d", 20)
			}
			s.window()
			members.WriteString(s.picks(networkTCP, 1))
		}
		counts := shares(members.String())
		least, most := min(counts['a'], counts['b'], counts['c']), max(counts['a'], counts['b'], counts['c'])
		if most-least > 2 || counts['d'] > least {
			t.Fatal(counts)
		}
	})
}

func TestRoundRobin_Field42_ReorderedDelaysKeepTheShares(t *testing.T) {
	tell(t, rotating("a", "b", "c"), nil, func(s *story) {
		s.settled(map[string]uint16{"a": 10, "b": 20, "c": 30})
		delays := []uint16{10, 20, 30}
		var members strings.Builder
		for i := range 300 {
			s.round(true)
			for j, tag := range s.tags {
				s.up(tag, delays[(i+j)%3])
			}
			s.roundEnd()
			members.WriteString(s.picks(networkTCP, 1))
		}
		expectShares(t, members.String(), map[rune]int{'a': 100, 'b': 100, 'c': 100})
	})
}

// FIELD case 43: the counter just below its overflow.
func TestRoundRobin_Field43_CounterOverflow(t *testing.T) {
	for _, tags := range [][]string{{"a", "b", "c"}, {"a", "b", "c", "d", "e"}} {
		tell(t, rotating(tags...), nil, func(s *story) {
			rotation := s.group.current.Load().pickers[networkTCP].(*rotation)
			rotation.taken.Store(math.MaxUint64 - 4)
			members := s.picks(networkTCP, 20)
			repeats := 0
			for i := 1; i < len(members); i++ {
				if members[i] == members[i-1] {
					repeats++
				}
			}
			if repeats > 1 {
				t.Fatalf("%d repeats in %s", repeats, members)
			}
			s.up("a", 10) // a decision after the overflow
			s.window()
			s.expect("aaa")
		})
	}
}

// FIELD case 44: TCP and UDP have turns of their own.
func TestRoundRobin_Field44_AlternatingTCPAndUDP(t *testing.T) {
	tell(t, rotating("a", "b"), nil, func(s *story) {
		var tcp, udp strings.Builder
		for range 10 {
			tcp.WriteString(s.picks(networkTCP, 1))
			udp.WriteString(s.picks(networkUDP, 1))
		}
		if tcp.String() != "ababababab" || udp.String() != "ababababab" {
			t.Fatal(tcp.String(), udp.String())
		}
	})
}

func TestRoundRobin_Field45_Weights(t *testing.T) {
	options := rotating("a", "b")
	options.Weights = map[string]int{"a": 11, "b": 3}
	tell(t, options, nil, func(s *story) {
		members := s.picks(networkTCP, 140)
		expectShares(t, members, map[rune]int{'a': 110, 'b': 30})
		if strings.Contains(members, "aaaaa") {
			t.Fatal("a run of more than four: ", members)
		}
	})
	options.Weights = map[string]int{"a": 7, "b": 7}
	tell(t, options, nil, func(s *story) { s.expect("abababab") })
	options.Weights = map[string]int{"b": 1000}
	tell(t, options, nil, func(s *story) {
		expectShares(t, s.picks(networkTCP, 1001), map[rune]int{'a': 1, 'b': 1000})
	})
	options.Weights = map[string]int{"a": math.MaxInt32, "b": 1}
	tell(t, options, nil, func(s *story) {
		if counts := shares(s.picks(networkTCP, 2*maxTurns)); counts['b'] < 1 || counts['b'] > 3 {
			t.Fatal(counts)
		}
	})
}

// A turn counts by the member's weight alone, not by whose turns it stands among.
func TestRoundRobin_S4_1_WeightsCountAlikeWhoeverTakesTurns(t *testing.T) {
	options := rotating("a", "b", "c")
	options.Weights = map[string]int{"c": 2}
	tell(t, options, nil, func(s *story) {
		s.settled(map[string]uint16{"a": 10, "b": 11})
		s.expect("a")
		s.up("c", 12)
		s.window()
		s.suspect("a", false)
		s.suspect("b", false)
		s.expect("c") // half of its share: a has had all of its own
		s.suspect("a", true)
		s.suspect("b", true)
		s.window()
		s.expect("bcac")
	})
}

func TestRoundRobin_S4_1_NeverTwiceWhileAnotherWaits(t *testing.T) {
	tell(t, rotating("a", "b", "c"), nil, func(s *story) {
		s.settled(map[string]uint16{"a": 10, "b": 20, "c": 30})
		s.expect("abc")
		s.up("c", 5)
		s.window()
		s.expect("abc") // c is the fastest by now, but was just served
	})
}

func TestRoundRobin_Field45_SharesHoldWhileAThirdFlaps(t *testing.T) {
	options := rotating("a", "b", "c")
	options.Weights = map[string]int{"a": 11, "b": 3}
	tell(t, options, nil, func(s *story) {
		s.settled(map[string]uint16{"a": 10, "b": 20, "c": 30})
		var members strings.Builder
		for i := range 200 {
			if i%2 == 0 {
				s.down("c")
			} else {
				s.up("c", 30)
			}
			s.window()
			members.WriteString(s.picks(networkTCP, 5))
		}
		counts := shares(members.String())
		ratio := float64(counts['a']) / float64(counts['b'])
		if math.Abs(ratio-11.0/3) > 0.1*11/3 {
			t.Fatal(counts, ratio)
		}
	})
}

func TestRoundRobin_S1_1_SlowStart(t *testing.T) {
	options := rotating("a", "b")
	options.SlowStart = badoption.Duration(90 * time.Second)
	tell(t, options, nil, func(s *story) {
		s.settled(map[string]uint16{"a": 10, "b": 10})
		expectShares(t, s.picks(networkTCP, 100), map[rune]int{'a': 50, 'b': 50}) // b did not come back, it came
		s.down("b")
		s.window()
		s.up("b", 10)
		back := time.Now()
		for tenths := 1; tenths <= 10; tenths++ {
			s.pass(time.Until(back.Add(time.Duration(tenths-1) * 10 * time.Second)))
			count := 11 * 10 * (10 + tenths)
			counts := shares(s.picks(networkTCP, count))
			if expected := count * tenths / (10 + tenths); counts['b'] < expected-1 || counts['b'] > expected+1 {
				t.Errorf("with %d tenths b got %d of %d, not %d", tenths, counts['b'], count, expected)
			}
		}
	})
}

func TestRoundRobin_S3_3_OnlyWhoCarriesUDP(t *testing.T) {
	tell(t, rotating("a", "b!", "c"), nil, func(s *story) {
		// b is the fastest, but counts for TCP only: c is alive for UDP.
		s.settled(map[string]uint16{"a": 300, "b": 10, "c": 350})
		if found := s.picks(networkUDP, 4); found != "acac" {
			t.Fatal(found)
		}
		s.expect("bbb")
	})
	tell(t, rotating("a!", "b!"), nil, func(s *story) {
		s.settled(map[string]uint16{"a": 10, "b": 20})
		if s.group.current.Load().carriesUDP {
			t.Fatal("no member carries UDP")
		}
		if found := s.picks(networkUDP, 2); found != "ab" {
			t.Fatal(found)
		}
	})
}

func TestRoundRobin_S4_7_SuspectIsPassedOver(t *testing.T) {
	tell(t, rotating("a", "b", "c"), nil, func(s *story) {
		s.settled(map[string]uint16{"a": 10, "b": 20, "c": 30})
		s.suspect("b", false)
		s.expect("acac")
		s.suspect("a", false)
		s.suspect("c", false)
		expectShares(t, s.picks(networkTCP, 30), map[rune]int{'a': 10, 'b': 10, 'c': 10}) // nobody else is there
		for _, tag := range s.tags {
			s.suspect(tag, true)
		}
		s.window()
		expectShares(t, s.picks(networkTCP, 30), map[rune]int{'a': 10, 'b': 10, 'c': 10})
	})
}

func TestRoundRobin_S7_1_HeldRoundKeepsWhoAnswers(t *testing.T) {
	tell(t, rotating("a", "b", "c"), nil, func(s *story) {
		s.settled(map[string]uint16{"a": 10, "b": 20})
		s.round(true)
		s.up("c", 10)
		s.up("a", 500) // not alive any more, but it answers
		s.window()
		s.expect("baba")
		s.roundEnd()
		s.expect("cbcb")
	})
}

func TestRoundRobin_S7_2_FailingIsReplacedInAHeldRound(t *testing.T) {
	tell(t, rotating("a", "b", "c"), nil, func(s *story) {
		s.settled(map[string]uint16{"a": 10, "b": 20})
		s.round(true)
		s.up("c", 10)
		s.down("a")
		s.window()
		expectShares(t, s.picks(networkTCP, 10), map[rune]int{'b': 5, 'c': 5})
	})
}

func TestRoundRobin_S7_4_FirstRoundIsNotHeld(t *testing.T) {
	tell(t, rotating("a", "b", "c"), nil, func(s *story) {
		s.boot()
		s.up("b", 100)
		s.pass(testWindow - time.Millisecond)
		s.expect("abc")
		s.pass(time.Millisecond)
		s.expect("bbb")
		s.up("c", 150)
		s.window()
		expectShares(t, s.picks(networkTCP, 10), map[rune]int{'b': 5, 'c': 5})
	})
}

func TestShown_S5_4(t *testing.T) {
	tell(t, rotating("a", "b", "c"), nil, func(s *story) {
		s.expectShown("a")
		s.settled(map[string]uint16{"a": 100, "b": 60, "c": 300})
		s.expectShown("b")
		s.up("a", 11) // 49 ms faster
		s.window()
		s.expectShown("b")
		s.up("a", 9) // 51 ms faster
		s.window()
		s.expectShown("a")
		s.round(true)
		s.up("b", 1)
		s.up("a", 400)
		s.window()
		s.expectShown("a") // in a regular round until it stops answering
		s.down("a")
		s.window()
		s.expectShown("b")
		s.roundEnd()
		s.expectShown("b")
	})
}

func TestGroup_S6_1a_OnlyTheDeadMembersConnections(t *testing.T) {
	tell(t, rotating("a", "b"), nil, func(s *story) {
		s.settled(map[string]uint16{"a": 100, "b": 90})
		s.down("b")
		s.expectDid("b down", "close b [true true]: S6.1a")
		s.up("b", 5000) // speed closes nothing
		s.window()
		s.expectDid("b up")
	})
}

func TestGroup_S6_1b_OnceThirtySecondsAfterTheStart(t *testing.T) {
	tell(t, rotating("a", "b!", "c"), nil, func(s *story) {
		s.at(3 * time.Second)
		s.boot()
		s.up("a", 100)
		s.up("b", 100)
		s.down("c")
		s.roundEnd()
		s.did()
		s.at(33*time.Second - time.Millisecond)
		s.expectDid()
		s.at(33 * time.Second)
		s.expectDid("close b [false true]: S6.1b", "close c [true true]: S6.1b")
		s.at(time.Hour)
		s.expectDid()
	})
}

func TestGroup_S6_1b_WaitsForAFreshResult(t *testing.T) {
	tell(t, lowest("a", "b"), map[string]uint16{"b": 10}, func(s *story) {
		s.boot()
		s.at(50 * time.Second)
		s.expectDid()
		s.up("a", 100)
		s.window()
		s.expectDid("a up", "b>a: first result", "close b [true true]: S6.1b")
	})
}

// FIELD case 46: it fails and recovers within a window; what counts is the latest.
func TestGroup_Field46_LatestResultsDecide(t *testing.T) {
	tell(t, rotating("a", "b"), nil, func(s *story) {
		s.settled(map[string]uint16{"a": 100, "b": 90})
		s.down("b")
		s.up("b", 90)
		s.down("a")
		s.up("a", 100)
		s.window()
		expectShares(t, s.picks(networkTCP, 20), map[rune]int{'a': 10, 'b': 10})
		current := s.group.current.Load().members
		if !slices.EqualFunc(current, s.tags, func(m member, tag string) bool { return m.result == s.known[tag] }) {
			t.Fatal(current)
		}
	})
}

func TestView_S3_1_S3_2(t *testing.T) {
	for _, it := range []struct {
		result adapter.Result
		delay  uint16
	}{
		{adapter.Result{State: adapter.StateUp, Delay: 1}, 1},
		{adapter.Result{State: adapter.StateUp, Delay: 65534}, 65534},
		{adapter.Result{State: adapter.StateCached, Delay: 30}, 20030},
		{adapter.Result{State: adapter.StateCached, Delay: 60000}, 65534},
		{adapter.Result{State: adapter.StateDown, Delay: 30}, 65535},
		{adapter.Result{}, 65535},
	} {
		members := newState([]member{{result: it.result}}).members
		if found := members[0].delay(); found != it.delay {
			t.Errorf("%+v: the group works with %d, not %d", it.result, found, it.delay)
		}
	}
	for _, it := range []struct {
		fastest    uint16
		ratio      float64
		acceptable uint16
	}{
		{1, 2, 200}, {100, 2, 200}, {101, 2, 202}, {100, 1, 100}, {333, 1.5, 499},
		{40000, 2, 65534}, {65534, 1, 65534}, {20030, 2, 40060}, {100, 1e18, 65534},
	} {
		if found := acceptableDelay(it.fastest, it.ratio); found != it.acceptable {
			t.Errorf("fastest %d, ratio %v: acceptable is %d, not %d", it.fastest, it.ratio, found, it.acceptable)
		}
	}
}

// FIELD case 44: two groups that share their members, used in strict alternation.
func TestRoundRobin_Field44_TwoGroupsShareMembers(t *testing.T) {
	tell(t, rotating("a", "b"), nil, func(one *story) {
		one.settled(map[string]uint16{"a": 10, "b": 20})
		two := newRotation(one.group.state.view(one.group.config, networkTCP, causeEvent, one.start), []int{0, 1}, make(map[int]float64), noMember)
		var members string
		for range 4 {
			members += one.picks(networkTCP, 1) + one.tags[two.pick(0)]
		}
		if members != "aabbaabb" {
			t.Fatal(members)
		}
	})
}
