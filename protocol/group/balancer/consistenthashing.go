package balancer

import "tarazu/common/rendezvous"

// consistentHashing gives a key the same member while that is alive: on every machine, after restarts, whatever the
// order of the list, and when other members come and go (S4.2). The key of a connection is the site that it goes to.
type consistentHashing struct {
	ring     *rendezvous.Ring
	maxRetry int
}

func newConsistentHashing(setting setting) strategy {
	return consistentHashing{newRing(setting), setting.options.MaxRetry}
}

// newRing puts the members on a ring. The group's tag salts it, so that nested groups do not choose in step.
func newRing(setting setting) *rendezvous.Ring {
	members := make([]rendezvous.Member, len(setting.members))
	for i, member := range setting.members {
		members[i] = rendezvous.Member{Tag: member.tag, Weight: member.weight}
	}
	return rendezvous.New(setting.tag, members)
}

func (s consistentHashing) choose(view view, previous memory) choice {
	hashed := newHashing(s.ring, s.maxRetry, view)
	picker, unchanged := previous.(*rememberingPicker)
	if !unchanged || !picker.hashing.equal(hashed) {
		picker = newRememberingPicker(hashed)
	}
	return choice{picker: picker, memory: picker, selected: noMember}
}
