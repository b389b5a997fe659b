//go:build linux

package test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"tarazu/test/harness"
)

// soakVariable is how long the soak lasts, and soakSeed what its schedule is made from; absent, seconds and 1.
const (
	soakVariable = "SOAK"
	soakSeed     = "SOAK_SEED"
)

// Mixed TCP and UDP through every strategy, while members break and mend by a seeded schedule, with a reload in the middle:
// every connection ends by its client, by its server, or by a rule that the log names; and in the end memory, goroutines
// and descriptors are what they were in the beginning.
func TestSoak(t *testing.T) {
	t.Parallel()
	duration := 6 * time.Second
	if text := os.Getenv(soakVariable); text != "" {
		var err error
		if duration, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	seed, _ := strconv.ParseUint(os.Getenv(soakSeed), 10, 64)
	s := startSoak(t, max(seed, 1))
	s.run(time.Second, false) // warm
	before := s.usage()
	s.run(duration, true)
	// What clients left while it was being opened is given up after 5 s.
	after := before
	flat := func() bool {
		const more = 5
		after = s.usage()
		return after.Goroutines <= before.Goroutines+more && after.Descriptors <= before.Descriptors+more && after.Heap <= before.Heap+4<<20
	}
	harness.Eventually(t, 3*soon, "as little is in use as before", flat)
	t.Logf("%v with seed %d: %v; before %+v, after %+v", duration, max(seed, 1), s.counts(), before, after)
	if served := s.count["stream ok"].Load(); served == 0 {
		t.Error("no stream lived to its end")
	}
}

// soakPatience is how long a client of the soak waits before it gives up.
const soakPatience = 2 * time.Second

type soak struct {
	t       *testing.T
	seed    uint64
	target  *harness.Target
	echoes  *harness.Echoes
	echo    *harness.Echo
	process *harness.Process
	debug   string
	servers []*harness.Faulty
	tags    map[string]string // by source
	clients []*harness.Client
	count   map[string]*atomic.Int64

	access sync.Mutex
	sick   map[string][]period // by source
	reload period
}

// period is a time in which something was wrong; without an end it goes on.
type period struct{ from, to time.Time }

func (p period) overlaps(from, to time.Time) bool {
	return !p.from.IsZero() && p.from.Before(to) && (p.to.IsZero() || from.Before(p.to))
}

func startSoak(t *testing.T, seed uint64) *soak {
	t.Helper()
	s := &soak{
		t: t, seed: seed, target: harness.StartTarget(t), echoes: harness.StartEchoes(t), echo: harness.StartEcho(t),
		tags: make(map[string]string), sick: make(map[string][]period), count: make(map[string]*atomic.Int64),
	}
	for _, what := range []string{"get ok", "get failed", "stream ok", "stream failed", "stream ended by a rule", "packet ok", "packet lost"} {
		s.count[what] = new(atomic.Int64)
	}
	servers, outbounds, tags, sources := startMembers(t, 6)
	s.servers = servers
	for i, source := range sources {
		s.tags[source] = tags[i]
	}
	packets := []string{"packets-0", "packets-1"}
	for i, tag := range packets {
		outbounds = append(outbounds, object{"type": "direct", "tag": tag, "inet4_bind_address": harness.Address(50 + i)})
	}
	var inbounds, rules []object
	for _, strategy := range strategies {
		port := harness.FreePort(t)
		client := harness.NewClient(port)
		client.Timeout = soakPatience
		s.clients = append(s.clients, client)
		inbounds = append(inbounds, object{"type": "mixed", "tag": strategy, "listen": "127.0.0.1", "listen_port": port})
		outbounds = append(outbounds,
			object{"type": "balancer", "tag": strategy, "strategy": strategy, "outbounds": tags, "delay_acceptable_ratio": wide, "interrupt_exist_connections": true},
			object{"type": "balancer", "tag": strategy + " UDP", "strategy": strategy, "outbounds": packets, "delay_acceptable_ratio": wide})
		rules = append(rules,
			object{"inbound": strategy, "network": "udp", "outbound": strategy + " UDP"}, object{"inbound": strategy, "outbound": strategy})
	}
	configuration := harness.Monitored(
		object{"log": object{"level": "info"}, "inbounds": inbounds, "outbounds": outbounds, "route": object{"rules": rules}},
		harness.Monitoring(s.target, object{"interval": "200ms", "url_test_timeout": "500ms"}),
	)
	s.debug = harness.Loopback(harness.FreePort(t))
	configuration["experimental"].(object)["debug"] = object{"listen": s.debug}
	s.process = harness.StartReady(t, configuration)
	awaitUp(s.process, 0, tags...)
	return s
}

// run has clients at work for a while.
func (s *soak) run(duration time.Duration, churn bool) {
	end := make(chan struct{})
	var workers sync.WaitGroup
	for i := range 3 * len(s.clients) {
		random := rand.New(rand.NewPCG(s.seed, uint64(i)))
		workers.Go(func() {
			for !isClosed(end) {
				s.connect(s.clients[i%len(s.clients)], random, end)
			}
		})
	}
	if churn {
		workers.Go(func() { s.churn(end) })
		time.AfterFunc(duration/2, s.reloadNow)
	}
	time.Sleep(duration) // how long the soak is; nothing is decided by it
	close(end)
	workers.Wait()
}

func isClosed(end <-chan struct{}) bool {
	select {
	case <-end:
		return true
	default:
		return false
	}
}

// churn breaks and mends members, at most half of them at a time.
func (s *soak) churn(end <-chan struct{}) {
	random := rand.New(rand.NewPCG(s.seed, 1<<32))
	modes := []harness.Mode{harness.Refuse, harness.Tarpit, harness.Silent, harness.Reset, harness.Sever, harness.Stall, harness.Garbage}
	var broken []int
	for !isClosed(end) {
		pause := time.NewTimer(time.Duration(50+random.IntN(250)) * time.Millisecond)
		select {
		case <-end:
		case <-pause.C:
		}
		if len(broken) < len(s.servers)/2 && random.IntN(2) == 0 {
			if it := random.IntN(len(s.servers)); !s.isSick(it) {
				broken = append(broken, it)
				s.become(it, modes[random.IntN(len(modes))])
			}
		} else if len(broken) > 0 {
			s.become(broken[0], harness.Serve)
			broken = broken[1:]
		}
	}
	for _, it := range broken {
		s.become(it, harness.Serve)
	}
}

func (s *soak) become(number int, mode harness.Mode) {
	server := s.servers[number]
	s.access.Lock()
	defer s.access.Unlock()
	periods := s.sick[server.Address]
	if mode == harness.Serve {
		server.Become(mode)
		server.Break() // it is another run of the server: a SOCKS client waits for ever for one that says nothing
		periods[len(periods)-1].to = time.Now()
		return
	}
	s.sick[server.Address] = append(periods, period{from: time.Now()})
	server.Become(mode)
}

func (s *soak) isSick(number int) bool {
	s.access.Lock()
	defer s.access.Unlock()
	periods := s.sick[s.servers[number].Address]
	return len(periods) > 0 && periods[len(periods)-1].to.IsZero()
}

func (s *soak) reloadNow() {
	s.access.Lock()
	s.reload.from = time.Now()
	s.access.Unlock()
	mark := s.process.Log.Mark()
	s.process.Signal(syscall.SIGHUP)
	if _, err := s.process.Log.Await(mark, soon, "sing-box started"); err != nil {
		s.t.Errorf("reload: %v", err)
	}
	s.access.Lock()
	defer s.access.Unlock()
	s.reload.to = time.Now()
}

// tell counts what became of something.
func (s *soak) tell(what string) { s.count[what].Add(1) }

func (s *soak) counts() map[string]int64 {
	counts := make(map[string]int64)
	for what, count := range maps.All(s.count) {
		counts[what] = count.Load()
	}
	return counts
}

// connect makes one connection of some kind, to its end.
func (s *soak) connect(client *harness.Client, random *rand.Rand, end <-chan struct{}) {
	switch random.IntN(4) {
	case 0:
		began := time.Now()
		if _, err := client.Get(s.target.URL); err != nil {
			s.tell("get failed")
			s.expectReason("a request", began, err, "")
			return
		}
		s.tell("get ok")
	case 1:
		began := time.Now()
		source, err := client.Exchange(s.echo.Address)
		if err != nil {
			s.tell("packet lost")
			if !s.reloading(began) {
				s.t.Errorf("a packet was lost: %v", err)
			}
			return
		}
		if source != harness.Address(50) && source != harness.Address(51) {
			s.t.Errorf("a packet came from %s", source)
		}
		s.tell("packet ok")
	default:
		s.stream(client, random, end)
	}
}

// stream opens a stream, uses it for a while and leaves it.
func (s *soak) stream(client *harness.Client, random *rand.Rand, end <-chan struct{}) {
	began, mark := time.Now(), s.process.Log.Mark()
	stream, err := client.TryOpen(s.echoes.Address)
	if err != nil {
		s.tell("stream failed")
		s.expectReason("a stream", began, err, "")
		return
	}
	defer stream.Leave(random.IntN(4) == 0)
	stream.Patience = soakPatience
	for range 1 + random.IntN(20) {
		if err = stream.Try("hello"); err != nil {
			break
		}
		if isClosed(end) {
			break
		}
		time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond) // a client that thinks
	}
	if err == nil {
		s.tell("stream ok")
		return
	}
	if tag := s.tags[stream.Known()]; tag != "" {
		// The line follows when all are closed.
		if _, noLine := s.process.Log.Await(mark, time.Second, "connections of member "+tag+": S6"); noLine == nil {
			s.tell("stream ended by a rule")
			return
		}
	}
	s.tell("stream failed")
	s.expectReason("a stream over "+s.tags[stream.Known()], began, err, stream.Known())
}

// expectReason fails unless a member, or this one, was sick meanwhile, or the program was being reloaded.
func (s *soak) expectReason(what string, began time.Time, err error, source string) {
	if s.reloading(began) {
		return
	}
	s.access.Lock()
	defer s.access.Unlock()
	for of, periods := range s.sick {
		for _, it := range periods {
			// What began while a member was sick may have been given to it.
			if (source == "" || source == of) && it.overlaps(began, time.Now()) {
				return
			}
		}
	}
	s.t.Errorf("%s failed after %v, and nobody was to blame: %v", what, time.Since(began), err)
}

func (s *soak) reloading(began time.Time) bool {
	s.access.Lock()
	defer s.access.Unlock()
	return s.reload.overlaps(began, time.Now())
}

// usage is what is in use when no connection has reached the far side.
func (s *soak) usage() harness.Usage {
	for source := range s.tags {
		harness.Eventually(s.t, soon, fmt.Sprint("no connection from ", source), func() bool { return s.echoes.Open(source) == 0 })
	}
	return s.process.Usage(s.debug)
}
