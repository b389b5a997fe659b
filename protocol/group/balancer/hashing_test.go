package balancer

import (
	"fmt"
	"slices"
	"testing"

	"tarazu/option"
)

func hashed(tags ...string) option.BalancerOutboundOptions {
	return option.BalancerOutboundOptions{Strategy: option.StrategyConsistentHashing, Outbounds: tags}
}

var fiveTags = []string{"de", "nl", "fi", "us", "jp"}

// alike is the same delay for all.
func alike(tags []string) map[string]uint16 {
	delays := make(map[string]uint16)
	for _, tag := range tags {
		delays[tag] = 50
	}
	return delays
}

// table is who gets each of some keys.
func (s *story) table() (members []string) {
	for key := range uint64(500) {
		members = append(members, s.pick(networkTCP, key*keyStep))
	}
	return members
}

func TestConsistentHashing_S4_2_SameInAnyOrder(t *testing.T) {
	var first []string
	for _, tags := range [][]string{fiveTags, {"jp", "us", "fi", "nl", "de"}, {"fi", "de", "jp", "us", "nl"}} {
		tell(t, hashed(tags...), nil, func(s *story) {
			before := s.table() // with no result it is the hashed member already
			s.settled(alike(tags))
			table := s.table()
			if !slices.Equal(before, table) {
				t.Fatal("results that kill nobody move keys")
			}
			if first == nil {
				first = table
			}
			if !slices.Equal(first, table) {
				t.Fatalf("in the order %v keys move", tags)
			}
		})
	}
}

// FIELD case 47: each member in turn is killed and revived.
func TestConsistentHashing_Field47_OnlyItsKeysMove(t *testing.T) {
	for _, retries := range []int{0, 1, len(fiveTags) - 1, 1_000_000} {
		options := hashed(fiveTags...)
		options.MaxRetry = retries
		tell(t, options, nil, func(s *story) {
			s.settled(alike(fiveTags))
			whole := s.table()
			for _, killed := range fiveTags {
				s.down(killed)
				s.window()
				heirs := make(map[string]bool)
				for i, member := range s.table() {
					switch {
					case whole[i] != killed && member != whole[i]:
						t.Fatalf("max_retry %d: without %s a key of %s moves to %s", retries, killed, whole[i], member)
					case member == killed:
						t.Fatalf("max_retry %d: %s is down and gets a key", retries, killed)
					case whole[i] == killed:
						heirs[member] = true
					}
				}
				// Without retries the first alive of the list has them all; with one, the hash spreads them over all others.
				if expected := map[bool]int{true: 1, false: len(fiveTags) - 1}[retries == 0]; len(heirs) != expected {
					t.Errorf("max_retry %d: keys of %s go to %v", retries, killed, heirs)
				}
				s.up(killed, 50)
				s.window()
				if !slices.Equal(s.table(), whole) {
					t.Fatalf("max_retry %d: %s is back, its keys are not", retries, killed)
				}
			}
		})
	}
}

// With two dead members one retry may hit the other; then it is the first alive of the list.
func TestConsistentHashing_S4_2_RetriesThenTheList(t *testing.T) {
	for retries, moreThanList := range []bool{false, true, true} {
		options := hashed("a", "b", "c", "d")
		options.MaxRetry = retries
		tell(t, options, nil, func(s *story) {
			s.settled(alike(s.tags))
			whole := s.table()
			s.down("b")
			s.down("c")
			s.window()
			counts := make(map[string]int)
			for i, member := range s.table() {
				if whole[i] == "b" || whole[i] == "c" {
					counts[member]++
				}
			}
			total := counts["a"] + counts["d"]
			switch {
			case counts["b"]+counts["c"] > 0:
				t.Errorf("%d retries: %v", retries, counts)
			case !moreThanList && counts["d"] > 0:
				t.Errorf("no retries, and keys go past the list: %v", counts)
			case retries == 1 && !(counts["d"] > total/5 && counts["d"] < total*9/20): // a third: of three next picks, one
				t.Errorf("one retry: %v", counts)
			case retries == 2 && !(counts["d"] > total*2/5 && counts["d"] < total*3/5): // half
				t.Errorf("two retries: %v", counts)
			}
		})
	}
}

func TestConsistentHashing_S4_2_NoneAlive(t *testing.T) {
	tell(t, hashed(fiveTags...), nil, func(s *story) {
		s.settled(alike(fiveTags))
		whole := s.table()
		for _, tag := range fiveTags {
			s.down(tag)
		}
		s.window()
		if !slices.Equal(s.table(), whole) {
			t.Fatal("with none alive it is not the hashed member")
		}
	})
}

func TestConsistentHashing_S3_3_OnlyWhoCarriesUDP(t *testing.T) {
	tell(t, hashed("a!", "b", "c"), nil, func(s *story) {
		s.settled(alike(s.tags))
		for key := range uint64(300) {
			tcp, udp := s.pick(networkTCP, key*keyStep), s.pick(networkUDP, key*keyStep)
			if udp == "a" || tcp != "a" && udp != tcp {
				t.Fatalf("TCP %s, UDP %s", tcp, udp)
			}
		}
	})
}

// Two groups do not choose in step: their tags are in the hash.
func TestConsistentHashing_S4_2_GroupsDiffer(t *testing.T) {
	for _, pair := range [][2]string{{"inner", "outer"}, {"a", "b"}} {
		rings := [2]func(uint64) int{}
		for i, tag := range pair {
			rings[i] = newRing(setting{tag: tag, members: []member{{tag: "x", weight: 1}, {tag: "y", weight: 1}}}).Pick
		}
		same := 0
		for key := range uint64(10000) {
			if rings[0](key*keyStep) == rings[1](key*keyStep) {
				same++
			}
		}
		if same < 4700 || same > 5300 {
			t.Errorf("%v: %d of 10000 keys agree", pair, same)
		}
	}
}

// What is remembered of picks is not seen in them, also with more members than are looked up plainly.
func TestConsistentHashing_RememberedPicksAreTheHashed(t *testing.T) {
	var tags []string
	for i := range 2 * rememberFrom {
		tags = append(tags, fmt.Sprint("member ", i))
	}
	tell(t, hashed(tags...), nil, func(s *story) {
		s.settled(alike(tags))
		picker := s.group.current.Load().pickers[networkTCP].(*rememberingPicker)
		for round := range 3 {
			for key := range uint64(3 * rememberPick) {
				if found, expected := picker.pick(key*keyStep), picker.hashing.pick(key*keyStep); found != expected {
					t.Fatalf("round %d: %d, not %d", round, found, expected)
				}
			}
		}
	})
}
