package balancer

import (
	"math"
	"slices"
	"time"

	"tarazu/adapter"
)

const (
	// cachedPenalty is added to a cached success, so that it orders members and never beats a fresh one (S3.1).
	cachedPenalty = 20000
	// deadDelay is the delay of a dead member, maxDelay the largest of any other (S3.1, S3.2).
	deadDelay = math.MaxUint16
	maxDelay  = deadDelay - 1
	// delayFloor keeps the acceptable delay from shrinking with very fast members (S3.2).
	delayFloor = 100
)

// delay is what the group works with (S3.1), an average of the fresh ones where it smooths (S8.2).
func (m member) delay() uint16 {
	switch m.result.State {
	case adapter.StateUp:
		return uint16(min(math.Round(m.average), maxDelay))
	case adapter.StateCached:
		return uint16(min(int(m.result.Delay)+cachedPenalty, maxDelay))
	default:
		return deadDelay
	}
}

// acceptableDelay is the largest delay with which a member counts as alive (S3.2).
func acceptableDelay(fastest uint16, ratio float64) uint16 {
	return uint16(min(float64(max(delayFloor, fastest))*ratio, maxDelay))
}

// views returns what a strategy may look at, which it does not change. Both networks often consider the same members.
func (s *state) views(config config, why cause, now time.Time) (views [networks]view) {
	views[networkTCP] = s.view(config, networkTCP, why, now)
	if slices.ContainsFunc(s.members, func(m member) bool { return !m.udp }) && s.carriesUDP() {
		views[networkUDP] = s.view(config, networkUDP, why, now)
	} else {
		views[networkUDP] = views[networkTCP]
		views[networkUDP].udp = true
	}
	return views
}

// view returns what a strategy may look at for one network: the members that carry it, or all where none does (S3.3).
func (s *state) view(config config, n network, why cause, now time.Time) view {
	v := view{
		now: now, cause: why, udp: n == networkUDP, round: s.round, held: s.held,
		members:  make([]candidate, 0, len(s.members)),
		position: make([]int32, len(s.members)),
	}
	all := n == networkTCP || !s.carriesUDP()
	fastest := uint16(deadDelay)
	for index, member := range s.members {
		v.position[index] = -1
		if !all && !member.udp {
			continue
		}
		delay := member.delay()
		fastest = min(fastest, delay)
		v.position[index] = int32(len(v.members))
		tenths, next := member.ramp(config.slowStart, now)
		v.wake = earliest(v.wake, next)
		v.members = append(v.members, candidate{
			index: index, weight: member.weight * tenths, state: member.result.State, delay: delay,
			tested: member.tested, suspect: member.suspect,
		})
	}
	acceptable := acceptableDelay(fastest, config.ratio)
	for i := range v.members {
		v.members[i].alive = v.members[i].delay <= acceptable
	}
	return v
}

// fullShare of a weight is ten tenths.
const fullShare = 10

// ramp is the share of its weight that a member gets, in tenths: for slow_start after it came back it rises evenly from
// one. next is when it rises again.
func (m member) ramp(slowStart time.Duration, now time.Time) (tenths int, next time.Time) {
	const steps = fullShare - 1
	passed := now.Sub(m.back)
	if slowStart == 0 || m.back.IsZero() || passed >= slowStart {
		return fullShare, time.Time{}
	}
	step := 1 + steps*passed/slowStart
	return int(step), m.back.Add((step*slowStart + steps - 1) / steps)
}

// carriesUDP reports whether any member does.
func (s *state) carriesUDP() bool {
	for _, member := range s.members {
		if member.udp {
			return true
		}
	}
	return false
}

// shownMember is the member that a person should see (S5.4): the one in use where there is one, else the fastest alive
// member, kept until another is clearly faster or it stops answering; while a round is held, until it stops answering.
// It is noMember while nothing is known.
func shownMember(s state, view view) int {
	if selected := s.networks[networkTCP].selected; selected != noMember {
		return selected
	}
	best, known := fastest(view)
	if !known {
		return s.shown
	}
	if s.shown != noMember {
		shown, _ := view.find(s.shown)
		if shown.fresh() && (view.held || !shownMargin.beaten(shown.delay, best.delay)) {
			return s.shown
		}
	}
	return best.index
}

// shownMargin is the larger of 50 ms and a tenth of the shown member's delay (S5.4).
var shownMargin = margin{milliseconds: 50, share: 0.1}
