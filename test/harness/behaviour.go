package harness

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/netip"
	"sync"
)

// behave treats one connection as a mode says. The caller closes it.
func (f *Faulty) behave(conn net.Conn, mode Mode) {
	switch mode {
	case Tarpit:
		hold(conn)
		return
	case Reset:
		reset(conn)
		return
	case Garbage:
		_, _ = conn.Write([]byte("\x00\xffthis is no protocol\r\n\r\n"))
		hold(conn)
		return
	}
	dial := func() (net.Conn, error) { return net.Dial("tcp", f.upstream) }
	if f.upstream == "" {
		destination, wanted := f.handshake(conn)
		if !wanted {
			return
		}
		dial = func() (net.Conn, error) { return f.dialFrom(destination) }
	}
	switch mode {
	case Silent:
		f.succeed(conn)
		hold(f.watched(conn))
	case Sever:
		f.succeed(conn)
		_, _ = f.watched(conn).Read(make([]byte, 4096))
		reset(conn)
	case ErrorStatus:
		f.succeed(conn)
		f.refuseRequest(conn)
	default:
		f.relay(conn, dial, mode == Stall)
	}
}

// reset has a connection end with a reset when it is closed.
func reset(conn net.Conn) {
	if stream, isTCP := conn.(*net.TCPConn); isTCP {
		_ = stream.SetLinger(0)
	}
}

// hold keeps a connection open until the other side closes it.
func hold(reader io.Reader) {
	_, _ = io.Copy(io.Discard, reader)
}

// handshake reads what a SOCKS client wants and refuses what this server cannot do.
func (f *Faulty) handshake(conn net.Conn) (destination netip.AddrPort, wanted bool) {
	command, text, err := acceptSOCKS(conn)
	if err != nil {
		return netip.AddrPort{}, false
	}
	if command != socksConnect {
		_ = answerSOCKS(conn, socksNotUnderstood)
		return netip.AddrPort{}, false
	}
	destination, err = netip.ParseAddrPort(text)
	if err != nil {
		_ = answerSOCKS(conn, socksUnreachable)
		return netip.AddrPort{}, false
	}
	return destination, true
}

func (f *Faulty) dialFrom(destination netip.AddrPort) (net.Conn, error) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(f.Address)}}
	return dialer.Dial("tcp", destination.String())
}

// succeed tells a SOCKS client that its target is connected; a gate says nothing.
func (f *Faulty) succeed(conn net.Conn) {
	if f.upstream == "" {
		_ = answerSOCKS(conn, socksSucceeded)
	}
}

// relay connects to the target and copies both ways; with stall, only the first bytes of the answer.
func (f *Faulty) relay(conn net.Conn, dial func() (net.Conn, error), stall bool) {
	upstream, err := dial()
	if err != nil {
		if f.upstream == "" {
			_ = answerSOCKS(conn, socksFailed)
		}
		return
	}
	defer upstream.Close()
	f.succeed(conn)
	var directions sync.WaitGroup
	directions.Go(func() {
		_, _ = io.Copy(upstream, f.watched(conn))
		closeWrite(upstream)
	})
	directions.Go(func() {
		if stall {
			const firstBytes = 12 // of a status line
			_, _ = io.CopyN(conn, upstream, firstBytes)
			hold(upstream)
			return
		}
		_, _ = io.Copy(conn, upstream)
		closeWrite(conn)
	})
	directions.Wait()
}

func closeWrite(conn net.Conn) {
	if stream, isTCP := conn.(*net.TCPConn); isTCP {
		_ = stream.CloseWrite()
	}
}

// refuseRequest answers an HTTP request in the name of its target.
func (f *Faulty) refuseRequest(conn net.Conn) {
	reader := bufio.NewReader(f.watched(conn))
	for {
		line, err := reader.ReadString('\n')
		if err != nil {
			return
		}
		if line == "\r\n" {
			break
		}
	}
	_, _ = io.WriteString(conn, "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
}

// watched is what a client sends; a test is known by its method.
func (f *Faulty) watched(conn net.Conn) io.Reader {
	return &watcher{Reader: conn, begin: func(content []byte) {
		if bytes.HasPrefix(content, []byte("HEAD ")) {
			f.access.Lock()
			defer f.access.Unlock()
			f.tests++
		}
	}}
}

type watcher struct {
	io.Reader
	begin func(content []byte)
	begun bool
}

func (w *watcher) Read(buffer []byte) (int, error) {
	count, err := w.Reader.Read(buffer)
	if count > 0 && !w.begun {
		w.begun = true
		w.begin(buffer[:count])
	}
	return count, err
}
