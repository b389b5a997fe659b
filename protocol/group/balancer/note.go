package balancer

import (
	"slices"

	"tarazu/adapter"
)

// note is a change that a person may want to follow (S7.6, S9.3).
type note struct {
	// member changed its state, for the reason given; or, with selected, took the selection of these networks.
	member   int
	result   adapter.Result
	selected bool
	networks [networks]bool
	previous int
	was      adapter.Result
	rule     string
}

// noteState records a change of a member's state, once (S7.6).
func (s *state) noteState(event event, result *actions) {
	if event.round && !event.failed {
		result.notes = append(result.notes, s.unsaid...)
		s.unsaid = nil
	}
	if s.members[event.member].result.State == event.result.State {
		return
	}
	told := note{member: event.member, result: event.result}
	answered := slices.ContainsFunc(s.members, func(m member) bool { return m.tested && m.result.State == adapter.StateUp })
	if event.round && event.failed && !answered {
		s.unsaid = append(slices.Clip(s.unsaid), told)
		return
	}
	result.notes = append(result.notes, told)
}

// note records a change of the selection.
func (s *state) note(n network, choice choice, result *actions) {
	previous := s.networks[n].selected
	if choice.selected == noMember || previous == noMember || previous == choice.selected {
		return
	}
	told := note{
		selected: true, rule: choice.rule,
		member: choice.selected, result: s.members[choice.selected].result,
		previous: previous, was: s.members[previous].result,
	}
	if last := len(result.notes) - 1; n != 0 && last >= 0 {
		// One line where both networks change alike.
		if other := result.notes[last]; other.selected && other.member == told.member && other.previous == told.previous && other.rule == told.rule {
			result.notes[last].networks[n] = true
			return
		}
	}
	told.networks[n] = true
	result.notes = append(result.notes, told)
}

// only tells which network something is about, unless it is both.
func only(networks [networks]bool) string {
	switch networks {
	case [...]bool{networkTCP: true, networkUDP: false}:
		return "TCP: "
	case [...]bool{networkTCP: false, networkUDP: true}:
		return "UDP: "
	default:
		return ""
	}
}
