package balancer

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// sessions remembers the members of keys (S4.3): up to a number of them, then the least recently used is dropped, and
// each for a time after its last use. Looking up takes only a shard's read lock.
type sessions struct {
	capacity int
	ttl      time.Duration // 0 is for ever
	// beginning keeps two from making room at the same time.
	beginning sync.Mutex
	count     int
	shards    [sessionShards]sessionShard
}

const sessionShards = 32

type sessionShard struct {
	access   sync.RWMutex
	sessions map[uint64]*session
	_        [24]byte // a shard and its neighbour share no cache line
}

type session struct {
	member atomic.Int32
	used   atomic.Int64 // Unix nanoseconds
}

func newSessions(capacity int, ttl time.Duration) *sessions {
	s := &sessions{capacity: capacity, ttl: ttl}
	for i := range s.shards {
		s.shards[i].sessions = make(map[uint64]*session)
	}
	return s
}

func (s *sessions) shard(key uint64) *sessionShard {
	return &s.shards[key>>32%sessionShards]
}

func (s *sessions) find(key uint64) *session {
	shard := s.shard(key)
	shard.access.RLock()
	defer shard.access.RUnlock()
	return shard.sessions[key]
}

func (s *sessions) expired(it *session, now int64) bool {
	return s.ttl > 0 && now-it.used.Load() > int64(s.ttl)
}

// recall returns the member of a key, whose time begins anew.
func (s *sessions) recall(key uint64) (member int, known bool) {
	it := s.find(key)
	now := time.Now().UnixNano()
	if it == nil || s.expired(it, now) {
		return noMember, false
	}
	it.used.Store(now)
	return int(it.member.Load()), true
}

// replace gives a key another member, unless somebody else has just done so, and returns the one it has.
func (s *sessions) replace(key uint64, member, by int) int {
	it := s.find(key)
	if it == nil || it.member.CompareAndSwap(int32(member), int32(by)) {
		return by
	}
	return int(it.member.Load())
}

// begin gives a new key a member, unless somebody else has just done so, and returns the one it has.
func (s *sessions) begin(key uint64, member int) int {
	s.beginning.Lock()
	defer s.beginning.Unlock()
	now := time.Now().UnixNano()
	if it := s.find(key); it != nil {
		if s.expired(it, now) {
			it.member.Store(int32(member))
		}
		it.used.Store(now)
		return int(it.member.Load())
	}
	if s.count >= s.capacity {
		s.dropLeastRecent()
	}
	it := new(session)
	it.member.Store(int32(member))
	it.used.Store(now)
	shard := s.shard(key)
	shard.access.Lock()
	defer shard.access.Unlock()
	shard.sessions[key] = it
	s.count++
	return member
}

// dropLeastRecent makes room. It looks at all, which only a new key pays for.
func (s *sessions) dropLeastRecent() {
	var leastRecent uint64
	used := int64(math.MaxInt64)
	for i := range s.shards {
		shard := &s.shards[i]
		shard.access.RLock()
		for key, it := range shard.sessions {
			if at := it.used.Load(); at < used {
				leastRecent, used = key, at
			}
		}
		shard.access.RUnlock()
	}
	shard := s.shard(leastRecent)
	shard.access.Lock()
	defer shard.access.Unlock()
	delete(shard.sessions, leastRecent)
	s.count--
}
