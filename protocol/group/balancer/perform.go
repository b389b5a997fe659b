package balancer

import (
	"tarazu/adapter"

	F "github.com/sagernet/sing/common/format"
)

// perform carries out what a decision wants done: says what changed, then closes what a rule closes.
func (o *Outbound) perform(actions actions) {
	for _, note := range actions.notes {
		o.tell(note)
	}
	for _, closing := range actions.closings {
		o.close(closing)
	}
	if actions.reselected {
		o.monitor.Reselected()
	}
}

// close closes what a rule closes, beside the group's goroutine: 100,000 connections are not closed at once (S6.3).
func (o *Outbound) close(closing closing) {
	var doomed []*link
	for n := range networks {
		if closing.networks[n] {
			doomed = append(doomed, o.members[closing.member].trackers[n].take(o.options.InterruptExistConnections)...)
		}
	}
	if len(doomed) == 0 {
		return
	}
	o.closings.Go(func() {
		closeAll(doomed)
		o.logger.Info("closed ", len(doomed), " connections of member ", o.tags[closing.member], ": ", closing.rule)
	})
}

// tell logs a change, one line each (S7.6).
func (o *Outbound) tell(note note) {
	tag := o.tags[note.member]
	switch {
	case note.selected:
		o.logger.Info(only(note.networks), "member ", tag, " (", delayText(note.result), ") takes over from ",
			o.tags[note.previous], " (", delayText(note.was), "): ", note.rule)
	case note.result.State == adapter.StateUp:
		o.logger.Info("member ", tag, " is now up (", note.result.Delay, " ms)")
	default:
		o.logger.Info("member ", tag, " is now down: ", note.result.Reason)
	}
}

// delayText tells a delay, or the state where there is none to tell; a cached one is not from now (S2.9).
func delayText(result adapter.Result) string {
	if result.State == adapter.StateUp {
		return F.ToString(result.Delay, " ms")
	}
	return result.State.String()
}
