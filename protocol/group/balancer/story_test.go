package balancer

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tarazu/adapter"
	"tarazu/option"

	F "github.com/sagernet/sing/common/format"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

const testWindow = 500 * time.Millisecond

// story is a group in virtual time, told what the monitor tells.
type story struct {
	t     *testing.T
	group *group
	tags  []string
	loads []load
	known map[string]adapter.Result
	start time.Time
	// lines are what the group did, since they were last read.
	access    sync.Mutex
	lines     []string
	decisions int
	wake      time.Time // of the last decision
	// inRound says that results told now belong to a round, answered that one of them was a success.
	inRound, answered bool
}

// tell runs a story under virtual time. Members that end in "!" carry no UDP.
func tell(t *testing.T, options option.BalancerOutboundOptions, cached map[string]uint16, tell func(s *story)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &story{t: t, known: make(map[string]adapter.Result), start: time.Now()}
		var members []member
		for _, tag := range options.Outbounds {
			tag, tcpOnly := strings.CutSuffix(tag, "!")
			s.tags = append(s.tags, tag)
			it := member{tag: tag, weight: max(1, options.Weights[tag]), udp: !tcpOnly}
			if delay, isCached := cached[tag]; isCached {
				it.result = adapter.Result{State: adapter.StateCached, Delay: delay}
				s.known[tag] = it.result
			}
			members = append(members, it)
		}
		s.loads = make([]load, len(members))
		strategy := newStrategy(setting{
			options: options, tag: "group", members: members, loads: s.loads, random: seeded(),
		})
		s.group = newGroup(newConfig(strategy, options), testWindow)
		s.group.translate = s.translate
		s.group.perform = s.record
		wake := s.group.begin(newState(members))
		ctx, cancel := context.WithCancel(t.Context())
		go s.group.run(ctx, wake)
		tell(s)
		cancel()
		<-s.group.done
	})
}

// seeded returns random numbers that are the same each time, for connections at the same time.
func seeded() func(n int) int {
	var access sync.Mutex
	random := rand.New(rand.NewPCG(1, 2))
	return func(n int) int {
		access.Lock()
		defer access.Unlock()
		return random.IntN(n)
	}
}

func (s *story) translate(events []event, told adapter.Event) []event {
	var members []int
	for index, tag := range s.tags {
		if tag == told.Tag {
			members = append(members, index)
		}
	}
	switch told.Kind {
	case adapter.EventStarted:
		return append(events, event{kind: eventStarted})
	case adapter.EventRoundStart:
		return append(events, event{kind: eventRoundStart, held: told.Held})
	case adapter.EventRoundEnd:
		return append(events, event{kind: eventRoundEnd, answered: told.Answered})
	}
	return appendMembers(events, told, members)
}

func (s *story) record(actions actions) {
	s.access.Lock()
	defer s.access.Unlock()
	s.decisions++
	s.wake = actions.wake
	for _, note := range actions.notes {
		switch {
		case note.selected:
			s.lines = append(s.lines, F.ToString(only(note.networks), s.tags[note.previous], ">", s.tags[note.member], ": ", note.rule))
		case note.result.State == adapter.StateUp:
			s.lines = append(s.lines, s.tags[note.member]+" up")
		default:
			s.lines = append(s.lines, s.tags[note.member]+" down")
		}
	}
	for _, closing := range actions.closings {
		s.lines = append(s.lines, fmt.Sprint("close ", s.tags[closing.member], " ", closing.networks, ": ", closing.rule))
	}
}

// did returns what the group did since the last call.
func (s *story) did() []string {
	synctest.Wait()
	s.access.Lock()
	defer s.access.Unlock()
	lines := s.lines
	s.lines = nil
	return lines
}

func (s *story) deliver(event adapter.Event) {
	s.group.deliver(event)
	synctest.Wait()
}

// up tells that a test of a member ended well.
func (s *story) up(tag string, delay uint16) {
	s.result(tag, adapter.Result{State: adapter.StateUp, Delay: delay, Tested: time.Now()}, false)
}

// down tells that a test of a member failed.
func (s *story) down(tag string) {
	s.result(tag, adapter.Result{State: adapter.StateDown, Delay: s.known[tag].Delay, Tested: time.Now(), Reason: "refused"}, true)
}

func (s *story) result(tag string, result adapter.Result, failed bool) {
	s.known[tag] = result
	s.answered = s.answered || !failed
	s.deliver(adapter.Event{Kind: adapter.EventResult, Tag: tag, Result: result, Failed: failed, Round: s.inRound})
}

// boot starts the box; a first round, which is not held, begins.
func (s *story) boot() {
	s.deliver(adapter.Event{Kind: adapter.EventStarted})
	s.round(false)
}

func (s *story) round(held bool) {
	s.inRound, s.answered = true, false
	s.deliver(adapter.Event{Kind: adapter.EventRoundStart, Held: held})
}

func (s *story) roundEnd() {
	s.inRound = false
	s.deliver(adapter.Event{Kind: adapter.EventRoundEnd, Answered: s.answered})
}

func (s *story) suspect(tag string, ended bool) {
	s.deliver(adapter.Event{Kind: adapter.EventRetest, Tag: tag, Ended: ended})
}

// window lets the debounce window pass.
func (s *story) window() {
	s.pass(testWindow)
}

// pass lets virtual time pass.
func (s *story) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// at goes to a time since the start of the story.
func (s *story) at(since time.Duration) {
	s.t.Helper()
	wait := time.Until(s.start.Add(since))
	if wait < 0 {
		s.t.Fatalf("the story is already past %v", since)
	}
	s.pass(wait)
}

// settled is a group after a first round with these delays; 0 is a failed test.
func (s *story) settled(delays map[string]uint16) {
	s.boot()
	for _, tag := range slices.Compact(slices.Clone(s.tags)) {
		if delay := delays[tag]; delay > 0 {
			s.up(tag, delay)
		} else {
			s.down(tag)
		}
	}
	s.roundEnd()
	s.window()
	s.did()
}

// pick opens a connection with a key and returns its member.
func (s *story) pick(n network, key uint64) string {
	return s.tags[s.group.current.Load().pickers[n].pick(key)]
}

// picks opens n connections and returns their members, as one word where tags are letters.
func (s *story) picks(n network, count int) string {
	var word strings.Builder
	for range count {
		word.WriteString(s.pick(n, 0))
	}
	return word.String()
}

// expect checks the members of the next TCP connections.
func (s *story) expect(members string) {
	s.t.Helper()
	if found := s.picks(networkTCP, len(members)); found != members {
		s.t.Fatalf("at %v: connections went to %s, not to %s", time.Since(s.start), found, members)
	}
}

// expectDid checks what the group did since the last look.
func (s *story) expectDid(lines ...string) {
	s.t.Helper()
	if found := s.did(); !slices.Equal(found, lines) {
		s.t.Fatalf("at %v: the group did %q, not %q", time.Since(s.start), found, lines)
	}
}

func (s *story) expectShown(tag string) {
	s.t.Helper()
	if found := s.tags[s.group.current.Load().shown]; found != tag {
		s.t.Fatalf("at %v: %s is shown, not %s", time.Since(s.start), found, tag)
	}
}
