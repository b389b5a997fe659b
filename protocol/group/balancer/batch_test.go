package balancer

import (
	"fmt"
	"testing"
	"time"

	"tarazu/option"
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
