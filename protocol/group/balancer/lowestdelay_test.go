package balancer

import (
	"testing"
	"time"

	"tarazu/option"

	"github.com/sagernet/sing/common/json/badoption"
)

func lowest(tags ...string) option.BalancerOutboundOptions {
	return option.BalancerOutboundOptions{Strategy: option.StrategyLowestDelay, Outbounds: tags}
}

func TestLowestDelay_S3_4_StartsWithTheFirstMember(t *testing.T) {
	tell(t, lowest("a", "b"), nil, func(s *story) {
		s.expect("aa")
		s.expectShown("a")
	})
}

func TestLowestDelay_S3_4_StartsWithTheFastestCached(t *testing.T) {
	tell(t, lowest("a", "b", "c"), map[string]uint16{"b": 90, "c": 80}, func(s *story) {
		s.expect("cc")
		s.expectShown("c")
	})
}

func TestLowestDelay_S3_5_Threshold(t *testing.T) {
	for _, it := range []struct {
		name           string
		tolerance      *int
		ratio          *float64
		current, other uint16
		moves          bool
	}{
		{"exactly the default tolerance is not more", nil, nil, 150, 100, false},
		{"one more than the default tolerance", nil, nil, 151, 100, true},
		{"a tenth of a slow member is more than 50 ms: exactly", nil, nil, 1000, 900, false},
		{"a tenth of a slow member is more than 50 ms: beyond", nil, nil, 1000, 899, true},
		{"within the tolerance although beyond the ratio", nil, nil, 60, 20, false},
		{"no tolerance at all: equal stays", new(0), new(0.0), 100, 100, false},
		{"no tolerance at all: one is enough", new(0), new(0.0), 100, 99, true},
		{"own tolerance", new(200), nil, 300, 101, false},
		{"own ratio", new(0), new(0.5), 200, 100, false},
		{"beyond own ratio", new(0), new(0.5), 200, 99, true},
	} {
		t.Run(it.name, func(t *testing.T) {
			options := lowest("a", "b")
			options.Tolerance, options.ToleranceRatio = it.tolerance, it.ratio
			tell(t, options, nil, func(s *story) {
				s.settled(map[string]uint16{"a": it.current})
				s.pass(time.Minute)
				s.up("b", it.other)
				s.window()
				if it.moves {
					s.expect("b")
				} else {
					s.expect("a")
				}
			})
		})
	}
}

func TestLowestDelay_S3_6_HoldsToTheMillisecond(t *testing.T) {
	tell(t, lowest("a", "b", "c"), nil, func(s *story) {
		s.boot()
		s.down("a")
		s.expect("a") // nobody alive: the selection stays
		s.at(10 * time.Second)
		s.up("b", 300)
		s.window()
		taken := 10*time.Second + testWindow
		s.expectDid("close a [true true]: S6.1a", "a down", "b up", "a>b: member down")
		s.roundEnd()
		s.up("c", 20)
		s.at(taken + 30*time.Second - time.Millisecond)
		s.expect("b")
		s.at(taken + 30*time.Second)
		s.expect("c")
		s.expectDid("c up", "close a [true true]: S6.1b", "close c [true true]: S6.1b", "b>c: hold over")
	})
}

func TestLowestDelay_S3_6_OwnCooldown(t *testing.T) {
	for _, cooldown := range []time.Duration{0, 2 * time.Second, 10 * time.Minute} {
		options := lowest("a", "b", "c")
		options.Cooldown = new(badoption.Duration(cooldown))
		tell(t, options, nil, func(s *story) {
			s.settled(map[string]uint16{"a": 1000})
			s.up("b", 500)
			s.window()
			s.expect("b")
			s.up("c", 100)
			s.window()
			if cooldown > testWindow {
				s.expect("b")
				s.pass(cooldown)
			}
			s.expect("c")
		})
	}
}

func TestLowestDelay_S3_6_ConfirmationStartsNoHold(t *testing.T) {
	tell(t, lowest("a", "b"), map[string]uint16{"a": 50}, func(s *story) {
		s.boot()
		s.up("a", 400)
		s.window()
		s.expect("a")
		s.up("b", 100)
		s.window()
		s.expect("b")
	})
}

func TestLowestDelay_S3_7_DeadMemberIsLeftAtOnce(t *testing.T) {
	tell(t, lowest("a", "b", "c"), nil, func(s *story) {
		s.settled(map[string]uint16{"a": 100, "b": 900, "c": 500})
		s.down("a")
		s.expect("c") // no window passed
		s.expectDid("a down", "a>c: member down", "close a [true true]: S6.1a")
		s.up("a", 100)
		s.window()
		s.expect("c") // held
		s.down("c")
		s.down("b")
		s.expect("a")
		s.down("a")
		s.expect("a") // none alive: the selection stays
	})
}

func TestLowestDelay_S3_8_CachedDecidesNothing(t *testing.T) {
	t.Run("a slow fresh success beats it", func(t *testing.T) {
		tell(t, lowest("a", "b", "c"), map[string]uint16{"a": 50, "c": 60}, func(s *story) {
			s.boot()
			s.up("b", 4000)
			s.window()
			s.expect("b")
		})
	})
	t.Run("it gives way to a better cached one when it fails", func(t *testing.T) {
		tell(t, lowest("a", "b", "c"), map[string]uint16{"a": 50, "c": 60, "b": 70}, func(s *story) {
			s.boot()
			s.down("a")
			s.expect("c")
		})
	})
	t.Run("it never takes over from a fresh one", func(t *testing.T) {
		tell(t, lowest("a", "b"), map[string]uint16{"b": 10}, func(s *story) {
			s.boot()
			s.up("a", 60000)
			s.window()
			s.expect("a")
			s.roundEnd()
			s.pass(time.Hour)
			s.expect("a")
		})
	})
	t.Run("not even from a dead one that answers again", func(t *testing.T) {
		tell(t, lowest("a", "b"), map[string]uint16{"b": 10}, func(s *story) {
			s.boot()
			s.down("a")
			s.expect("b")
			s.up("a", 3000)
			s.window()
			s.expect("a")
		})
	})
}

func TestLowestDelay_S7_1_HeldRoundChoosesAtItsEnd(t *testing.T) {
	tell(t, lowest("a", "b", "c"), nil, func(s *story) {
		s.settled(map[string]uint16{"a": 200, "b": 400, "c": 400})
		s.pass(5 * time.Minute)
		s.did()
		s.round(true)
		s.up("b", 100)
		s.window()
		s.up("c", 50)
		s.window()
		s.expect("a")
		s.inRound = false // a is not tested in this round
		s.roundEnd()
		s.expect("c")
		s.expectDid("a>c: round end")
	})
}

func TestLowestDelay_S7_2_ReplacedAtOnceThenTheBestOfAll(t *testing.T) {
	tell(t, lowest("a", "b", "c"), nil, func(s *story) {
		s.settled(map[string]uint16{"a": 100, "b": 300, "c": 400})
		s.pass(5 * time.Minute)
		s.round(true)
		s.down("a")
		s.expect("b")
		s.up("c", 20)
		s.window()
		s.expect("b") // a single result does not move it
		s.up("b", 310)
		s.roundEnd()
		s.expect("c") // the round's end does, whatever was held
	})
}

func TestLowestDelay_S7_3_FasterTakesOverOnceTheMemberInUseWasTested(t *testing.T) {
	tell(t, lowest("a", "b", "c"), nil, func(s *story) {
		s.settled(map[string]uint16{"a": 200, "b": 400, "c": 400})
		s.pass(5 * time.Minute)
		s.round(true)
		s.up("b", 100)
		s.window()
		s.expect("a")
		s.up("a", 210)
		s.window()
		s.expect("b")
	})
}

func TestLowestDelay_S7_4_FirstRoundAppliesEachResultAfterTheWindow(t *testing.T) {
	tell(t, lowest("a", "b", "c"), nil, func(s *story) {
		s.boot()
		s.up("b", 300)
		s.pass(testWindow - time.Millisecond)
		s.expect("a")
		s.pass(time.Millisecond)
		s.expect("b")
	})
}

// FIELD case 11: a slow member tested first, a fast one later.
func TestLowestDelay_Field11_FastByTheEndOfTheFirstRound(t *testing.T) {
	tell(t, lowest("slow", "fast"), nil, func(s *story) {
		s.boot()
		s.up("slow", 900)
		s.at(4 * time.Second)
		s.up("fast", 30)
		s.roundEnd()
		if found := s.picks(networkTCP, 1); found != "fast" {
			t.Fatal(found)
		}
	})
}

// FIELD case 12: two members whose delays jitter around each other.
func TestLowestDelay_Field12_JitterMovesNothing(t *testing.T) {
	tell(t, lowest("a", "b"), nil, func(s *story) {
		s.settled(map[string]uint16{"a": 100, "b": 110})
		s.pass(5 * time.Minute)
		s.did()
		for round := range 300 {
			s.pass(5 * time.Minute)
			s.round(true)
			s.up("a", uint16(80+round*37%41)) // within the tolerance of each other
			s.up("b", uint16(90+round*53%41))
			s.roundEnd()
		}
		s.expectDid()
	})
}

func TestLowestDelay_S8_2_SmoothingAndS8_5Ping(t *testing.T) {
	options := lowest("a", "b")
	options.Smoothing, options.Tolerance, options.ToleranceRatio = new(0.3), new(30), new(0.2)
	options.Cooldown = new(badoption.Duration(10 * time.Minute))
	tell(t, options, nil, func(s *story) {
		s.settled(map[string]uint16{"a": 100, "b": 120})
		s.pass(10 * time.Minute)
		s.up("b", 20) // average 90: not 20 % better
		s.window()
		s.expect("a")
		s.up("b", 20) // 69: 31 ms and 31 % better
		s.window()
		s.expect("b")
	})
}
