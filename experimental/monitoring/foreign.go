package monitoring

import (
	"math"
	"sync"
	"time"

	"tarazu/adapter"

	box "github.com/sagernet/sing-box/adapter"
	"github.com/sagernet/sing/common/observable"
)

// foreign tells what others put into sing-box's storage of results from what the monitor put there: the storage says
// only that something changed (S2.2).
type foreign struct {
	access sync.Mutex
	// seen is what the storage held when it was compared or written last, by tag; what is not there has no entry.
	seen   map[string]*box.URLTestHistory
	hook   *observable.Subscriber[struct{}]
	closed chan struct{}
	ended  sync.WaitGroup
}

func newForeign() foreign {
	return foreign{
		seen: make(map[string]*box.URLTestHistory),
		// One signal that is not read yet says it all: comparing finds everything that changed.
		hook:   observable.NewSubscriber[struct{}](1),
		closed: make(chan struct{}),
	}
}

func (f *foreign) close() {
	f.access.Lock()
	select {
	case <-f.closed:
	default:
		close(f.closed)
		_ = f.hook.Close()
	}
	f.access.Unlock()
	f.ended.Wait()
}

// publish shows an outbound's last outcome to `urltest` groups, the Clash API and the API service (S2.2); a failure
// removes it (S2.4). The monitor's lock is held.
func (s *Service) publish(monitor *Monitor, tag string) {
	s.foreign.access.Lock()
	defer s.foreign.access.Unlock()
	latest, succeeded := monitor.latest[tag]
	if !succeeded {
		delete(s.foreign.seen, tag)
		s.history.DeleteURLTestHistory(tag)
		return
	}
	entry := &box.URLTestHistory{Time: latest.at, Delay: latest.delay}
	s.foreign.seen[tag] = entry
	s.history.StoreURLTestHistory(tag, entry)
}

// reselected tells of a group's new choice what a selector tells of its own.
func (s *Service) reselected() {
	if s.history != nil {
		s.history.NotifyUpdated()
	} else {
		s.tellReach()
	}
}

func (s *Service) tellReach() {
	for _, monitor := range s.all() {
		monitor.access.Lock()
		monitor.tell(adapter.Event{Kind: adapter.EventReach})
		monitor.access.Unlock()
	}
}

// watchForeign has every change of the storage looked at: what groups lead to at once, results within half a
// debounce window, for they come in crowds.
func (s *Service) watchForeign() {
	if s.history == nil {
		return
	}
	s.history.AddUpdateHook(s.foreign.hook)
	signals, closed := s.foreign.hook.Subscription()
	s.foreign.ended.Go(func() {
		timer := time.NewTimer(math.MaxInt64)
		defer timer.Stop()
		waiting := false
		for {
			select {
			case <-closed:
				return
			case <-signals:
				s.tellReach()
				if !waiting {
					waiting = true
					timer.Reset(s.window / 2)
				}
			case <-timer.C:
				waiting = false
				s.takeIn()
				s.tellReach() // a urltest group chooses after its results were stored
			}
		}
	})
}

// takeIn compares the storage with what is known, and takes in what others put there as tests outside a round: a success
// at once, a failure after one test of our own; a monitor with other settings only tests (S2.3).
func (s *Service) takeIn() {
	if s.history == nil {
		return
	}
	changes := s.changes()
	if len(changes) == 0 {
		return
	}
	for _, monitor := range s.all() {
		monitor.hear(changes, monitor.applied != nil)
	}
}

type change struct {
	tag   string
	entry *box.URLTestHistory // nil where it was removed
}

func (s *Service) changes() (changes []change) {
	s.foreign.access.Lock()
	defer s.foreign.access.Unlock()
	look := func(tag string) {
		entry := s.history.LoadURLTestHistory(tag)
		if before := s.foreign.seen[tag]; entry == before {
			return
		}
		if entry == nil {
			delete(s.foreign.seen, tag)
		} else {
			s.foreign.seen[tag] = entry
		}
		changes = append(changes, change{tag, entry})
	}
	for _, it := range s.outbounds.Outbounds() {
		look(it.Tag())
	}
	for _, it := range s.endpoints.Endpoints() {
		look(it.Tag())
	}
	return changes
}

// hear takes in somebody else's tests of outbounds that groups of this monitor have.
func (m *Monitor) hear(changes []change, trusted bool) {
	m.access.Lock()
	defer m.access.Unlock()
	if m.network == nil || m.network.Err() != nil {
		return
	}
	reached := make(map[string]bool)
	for _, tag := range m.reached() {
		reached[tag] = true
	}
	var doubtful []string
	for _, it := range changes {
		switch {
		case !reached[it.tag]:
		case it.entry == nil || !trusted:
			doubtful = append(doubtful, it.tag)
		default:
			heard := outcome{delay: min(max(it.entry.Delay, 1), maxDelay)}
			m.latest[it.tag] = success{heard.delay, it.entry.Time}
			m.mute = false
			for _, judge := range m.judges {
				judge.apply(it.tag, heard, false)
			}
		}
	}
	m.testSoon(doubtful)
}
