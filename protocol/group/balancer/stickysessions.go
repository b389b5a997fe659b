package balancer

import (
	"time"

	"tarazu/adapter"
	"tarazu/common/rendezvous"
)

// stickySessions gives a new key a random alive member and remembers it, for up to 1 000 keys (S4.3). A remembered member
// that is dead is replaced as in consistent hashing, and that is remembered. With no member alive the hash picks and
// nothing is remembered.
type stickySessions struct {
	ring     *rendezvous.Ring
	maxRetry int
	sessions *sessions
	random   func(n int) int
}

// maxSessions is how many keys are remembered.
const maxSessions = 1000

func newStickySessions(setting setting) strategy {
	return stickySessions{
		ring: newRing(setting), maxRetry: setting.options.MaxRetry, random: setting.random,
		sessions: newSessions(maxSessions, time.Duration(setting.options.TTL)),
	}
}

func (s stickySessions) choose(view view, _ memory) choice {
	picker := &stickyPicker{
		hashing: newHashing(s.ring, s.maxRetry, view), sessions: s.sessions, random: s.random,
		udp: view.udp, down: make([]bool, len(view.position)),
	}
	for _, member := range view.members {
		picker.down[member.index] = member.state == adapter.StateDown
	}
	return choice{picker: picker, selected: noMember}
}

type stickyPicker struct {
	hashing
	sessions *sessions
	random   func(n int) int
	udp      bool
	// down tells of each member whether its last test failed: then it is dead for TCP and UDP alike.
	down []bool
}

// udpOnly sets a key's own UDP session apart.
const udpOnly = 0x9E3779B97F4A7C15

// pick returns the remembered member. TCP and UDP of a key share it where it serves both; where it does not serve UDP,
// because it does not carry it or is too slow there, UDP has a session of its own.
func (p *stickyPicker) pick(key uint64) int {
	if len(p.aliveMembers) == 0 {
		return p.hashing.pick(key)
	}
	shared, known := p.sessions.recall(key)
	if known && p.alive[shared] {
		return shared
	}
	if known && p.udp && !p.down[shared] {
		key ^= udpOnly
		shared, known = p.sessions.recall(key)
		if known && p.alive[shared] {
			return shared
		}
	}
	if known {
		return p.sessions.replace(key, shared, p.hashing.pick(key))
	}
	return p.sessions.begin(key, p.aliveMembers[p.random(len(p.aliveMembers))])
}
