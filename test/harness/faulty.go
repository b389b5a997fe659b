package harness

import (
	"net"
	"sync"
	"time"
)

// Mode is how a faulty server behaves.
type Mode string

const (
	// Serve does what a server should.
	Serve Mode = "serve"
	// Refuse listens no longer.
	Refuse Mode = "refuse"
	// Tarpit accepts connections and never answers.
	Tarpit Mode = "tarpit"
	// Silent says that the target is connected, and relays nothing.
	Silent Mode = "silent"
	// Sever says that the target is connected, and ends the connection with a reset when the client has sent something.
	Sever Mode = "sever"
	// Stall relays the request and only the first bytes of the answer.
	Stall Mode = "stall"
	// Reset ends every connection with a reset.
	Reset Mode = "reset"
	// Garbage answers with bytes that are no protocol.
	Garbage Mode = "garbage"
	// ErrorStatus answers HTTP requests itself, with an error.
	ErrorStatus Mode = "error status"
)

// Faulty is a server that can be told to misbehave: a SOCKS5 server, or a gate in front of another server.
type Faulty struct {
	// Address by which a target knows the server, if it is a SOCKS server.
	Address string
	// Port on which it listens.
	Port int

	owner Owner
	// upstream is what a gate leads to; empty for a SOCKS server.
	upstream string
	end      chan struct{}

	access                   sync.Mutex
	mode                     Mode
	delay                    time.Duration
	listener                 net.Listener
	open                     map[net.Conn]bool
	connections, peak, tests int
}

// StartFaulty runs a faulty SOCKS5 server, whose connections come from Address(number). It carries no UDP, and it looks
// up no names: what asks for one is told that it is unreachable.
func StartFaulty(owner Owner, number int) *Faulty {
	owner.Helper()
	return startFaulty(owner, &Faulty{Address: Address(number)})
}

// StartGate runs a faulty gate in front of another server of 127.0.0.1.
func StartGate(owner Owner, port int) *Faulty {
	owner.Helper()
	return startFaulty(owner, &Faulty{upstream: Loopback(port)})
}

func startFaulty(owner Owner, f *Faulty) *Faulty {
	owner.Helper()
	f.owner, f.Port = owner, FreePort(owner)
	f.end, f.open = make(chan struct{}), make(map[net.Conn]bool)
	f.mode = Refuse
	f.Become(Serve)
	owner.Cleanup(func() {
		f.Become(Refuse)
		close(f.end)
		f.Break()
	})
	return f
}

// Outbound is the client's side of a SOCKS server, for a configuration.
func (f *Faulty) Outbound(tag string) JSON {
	return JSON{"type": SOCKS, "tag": tag, "server": "127.0.0.1", "server_port": f.Port, "network": "tcp"}
}

// Become changes how connections are treated that arrive from now on. Counting starts anew.
func (f *Faulty) Become(mode Mode) {
	f.owner.Helper()
	f.access.Lock()
	defer f.access.Unlock()
	if mode == Refuse && f.listener != nil {
		closeWhole(f.listener)
		f.listener = nil
	}
	if mode != Refuse && f.listener == nil {
		listener, err := listenAgain(f.Port)
		if err != nil {
			f.owner.Fatalf("listen for a faulty server: %v", err)
			return
		}
		f.listener = listener
		go f.accept(listener)
	}
	f.mode = mode
	f.connections, f.tests, f.peak = 0, 0, len(f.open)
}

// Delay has the server answer only after a time.
func (f *Faulty) Delay(delay time.Duration) {
	f.access.Lock()
	defer f.access.Unlock()
	f.delay = delay
}

// Break ends all open connections.
func (f *Faulty) Break() {
	f.access.Lock()
	defer f.access.Unlock()
	for conn := range f.open {
		_ = conn.Close()
	}
}

// Connections counts the connections that arrived in this mode.
func (f *Faulty) Connections() int { return f.count(func() int { return f.connections }) }

// Tests counts those of them that were seen to be a test.
func (f *Faulty) Tests() int { return f.count(func() int { return f.tests }) }

// Open counts the connections that are open now, and Peak the most at a time in this mode.
func (f *Faulty) Open() int { return f.count(func() int { return len(f.open) }) }

// Peak counts the most connections that were open at a time in this mode.
func (f *Faulty) Peak() int { return f.count(func() int { return f.peak }) }

func (f *Faulty) count(read func() int) int {
	f.access.Lock()
	defer f.access.Unlock()
	return read()
}

func (f *Faulty) accept(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		mode, delay := f.enter(conn)
		go func() {
			defer f.leave(conn)
			if rest(f.end, delay) {
				f.behave(conn, mode)
			}
		}()
	}
}

func (f *Faulty) enter(conn net.Conn) (Mode, time.Duration) {
	f.access.Lock()
	defer f.access.Unlock()
	f.connections++
	f.open[conn] = true
	f.peak = max(f.peak, len(f.open))
	return f.mode, f.delay
}

func (f *Faulty) leave(conn net.Conn) {
	_ = conn.Close()
	f.access.Lock()
	defer f.access.Unlock()
	delete(f.open, conn)
}
