package balancer

import (
	"fmt"
	"testing"
	"time"

	"tarazu/option"

	"github.com/sagernet/sing/common/json/badoption"
)

// The results of a round lead to at most one snapshot per debounce window, successes and failures alike (S1.4, S7.4).
func TestGroup_S1_4_OneSnapshotPerWindow(t *testing.T) {
	for _, strategy := range option.Strategies {
		options := option.BalancerOutboundOptions{Strategy: strategy}
		for i := range 1000 {
			options.Outbounds = append(options.Outbounds, fmt.Sprint(i))
		}
		tell(t, options, nil, func(s *story) {
			s.boot()
			s.up("0", 1) // in use from now on; a failure of it is not waited with
			s.window()
			s.access.Lock()
			before := s.decisions
			s.access.Unlock()
			began := time.Now()
			for i := 1; i < 1000; i++ {
				if i%3 == 0 {
					s.down(fmt.Sprint(i))
				} else {
					s.up(fmt.Sprint(i), uint16(1+i))
				}
				s.pass(4 * time.Millisecond)
			}
			windows := int(time.Since(began) / testWindow)
			s.access.Lock()
			defer s.access.Unlock()
			if made := s.decisions - before; made > windows+1 || made < windows-1 {
				t.Errorf("%s: %d snapshots in %d windows", strategy, made, windows)
			}
		})
	}
}

// A group at rest has no timer and decides nothing, however long it rests.
func TestGroup_AtRestNothingHappens(t *testing.T) {
	for _, strategy := range option.Strategies {
		options := option.BalancerOutboundOptions{
			Strategy: strategy, Outbounds: []string{"a", "b", "c"}, SlowStart: badoption.Duration(time.Minute), TTL: badoption.Duration(time.Hour),
		}
		tell(t, options, nil, func(s *story) {
			s.settled(map[string]uint16{"a": 100, "b": 0, "c": 200})
			s.up("b", 50)
			s.pick(networkTCP, 1)
			s.pass(2 * time.Minute) // the first half minute, a cooldown and a slow start are over
			s.access.Lock()
			before, wake := s.decisions, s.wake
			s.access.Unlock()
			if !wake.IsZero() {
				t.Errorf("%s: wakes at %v", strategy, wake)
			}
			s.pass(30 * 24 * time.Hour)
			s.access.Lock()
			defer s.access.Unlock()
			if s.decisions != before {
				t.Errorf("%s: %d decisions in a month of rest", strategy, s.decisions-before)
			}
		})
	}
}
