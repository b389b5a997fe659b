package balancer

import (
	"time"

	"tarazu/adapter"
	"tarazu/option"
)

// lowestDelay sends everything through the fastest member and changes calmly (S3.4 to S3.8, S7.1 to S7.3): another
// member takes the selection only when it is faster by more than a tolerance, a member that took it keeps it for a
// cooldown, and a member that stops answering is left at once.
type lowestDelay struct {
	margin   margin
	cooldown time.Duration
}

const defaultCooldown = 30 * time.Second

func newLowestDelay(setting setting) strategy {
	return lowestDelay{
		margin:   newMargin(setting.options, margin{milliseconds: 50, share: 0.1}),
		cooldown: cooldownOr(setting.options, defaultCooldown),
	}
}

func cooldownOr(options option.BalancerOutboundOptions, otherwise time.Duration) time.Duration {
	if options.Cooldown != nil {
		return time.Duration(*options.Cooldown)
	}
	return otherwise
}

// margin is how much faster another member must be to take over (S3.5).
type margin struct {
	milliseconds int
	share        float64
}

func newMargin(options option.BalancerOutboundOptions, m margin) margin {
	if options.Tolerance != nil {
		m.milliseconds = *options.Tolerance
	}
	if options.ToleranceRatio != nil {
		m.share = *options.ToleranceRatio
	}
	return m
}

// beaten reports whether a member with delay current gives way to one with delay other. Both parts of the margin have
// to be exceeded, so the larger applies; exactly equal is not more (S3.5).
func (m margin) beaten(current, other uint16) bool {
	gain := int(current) - int(other)
	return gain > m.milliseconds && float64(gain) > m.share*float64(current)
}

// selection is the member in use and what holds it.
type selection struct {
	member int
	// until is the end of the cooldown (S3.6).
	until time.Time
	// stopgap: taken during a round because the member in use failed or had no fresh result. It is held against
	// single results, but the round's end chooses the best of all (S7.2).
	stopgap bool
}

func (s lowestDelay) choose(view view, previous memory) choice {
	selected, selectedBefore := previous.(selection)
	var rule string
	if !selectedBefore {
		selected = selection{member: startingMember(view)}
	}
	current, considered := view.find(selected.member)
	best, known := fastest(view)
	if known && best.index != selected.member {
		take := false
		switch {
		case !considered || current.state == adapter.StateDown:
			take, rule = true, "member down" // S3.7
		case current.state == adapter.StateUntested:
			take, rule = true, "first result" // S3.8
		case current.state == adapter.StateCached:
			// S3.8: to a better cached one, and to the first fresh success, however slow.
			take, rule = best.fresh() || best.delay < current.delay, "first result"
		case view.held && !current.tested:
			// S7.3: held until the round has tested the member in use.
		case view.now.Before(selected.until) && !(selected.stopgap && view.cause == causeRoundEnd):
			// S3.6: kept for the cooldown, whatever arrives.
		default:
			take, rule = s.margin.beaten(current.delay, best.delay), "faster"
			if view.cause == causeRoundEnd {
				rule = "round end"
			} else if view.cause == causeTick {
				rule = "hold over"
			}
		}
		if take {
			stopgap := view.round && !(considered && current.fresh())
			selected = selection{member: best.index, stopgap: stopgap}
			if best.fresh() {
				selected.until = view.now.Add(s.cooldown)
			}
		}
	}
	if view.cause == causeRoundEnd {
		selected.stopgap = false
	}
	result := choice{
		picker:   single(selected.member),
		memory:   selected,
		selected: selected.member,
		uses:     func(member int) bool { return member == selected.member },
		rule:     rule,
	}
	if selected.until.After(view.now) {
		result.wake = selected.until
	}
	return result
}

// startingMember is the fastest cached member, or the first (S3.4).
func startingMember(view view) int {
	if best, known := fastest(view); known {
		return best.index
	}
	return view.members[0].index
}

// fastest returns the best known member: the fastest with a fresh success, however slow; with none, the fastest cached
// one (S3.8). Equal members rank in list order.
func fastest(view view) (best candidate, known bool) {
	for _, candidate := range view.members {
		if !candidate.answered() {
			continue
		}
		if !known || candidate.fresh() && !best.fresh() ||
			candidate.fresh() == best.fresh() && candidate.delay < best.delay {
			best, known = candidate, true
		}
	}
	return best, known
}

// single picks one member always.
type single int

func (s single) pick(uint64) int {
	return int(s)
}
