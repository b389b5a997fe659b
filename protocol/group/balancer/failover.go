package balancer

import "tarazu/adapter"

// failover sends everything through the first healthy member in list order; when one higher up recovers, new
// connections go back to it at once (S4.6). Members count as healthy until a test fails; with all down, it is the first.
type failover struct{}

func newFailover(setting) strategy {
	return failover{}
}

func (failover) choose(view view, previous memory) choice {
	selected := view.members[0]
	for _, candidate := range view.members {
		if candidate.state != adapter.StateDown {
			selected = candidate
			break
		}
	}
	before, selectedBefore := previous.(int)
	rule := ""
	if selectedBefore {
		rule = "recovered"
		if member, considered := view.find(before); !considered || member.state == adapter.StateDown {
			rule = "member down"
		}
	}
	return choice{
		picker:   single(selected.index),
		memory:   selected.index,
		selected: selected.index,
		uses:     func(member int) bool { return member == selected.index },
		rule:     rule,
	}
}
