package main

import (
	"fmt"
	"io"
	"net"
	"time"

	"tarazu/test/harness"
)

// slowLine is a long way to a port of this machine: what goes in comes out later. It returns its own port.
func slowLine(owner harness.Owner, port int, delay time.Duration) int {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		owner.Fatalf("listen for the slow line: %v", err)
	}
	owner.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				far, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
				if err != nil {
					_ = near.Close()
					return
				}
				go carry(far, near, delay)
				carry(near, far, delay)
			}()
		}
	}()
	return listener.Addr().(*net.TCPAddr).Port
}

// carry brings what it reads to the other end, each piece after the delay.
func carry(to io.WriteCloser, from io.Reader, delay time.Duration) {
	type piece struct {
		content []byte
		due     time.Time
	}
	line := make(chan piece, 1024)
	go func() {
		defer close(line)
		for {
			buffer := make([]byte, 16<<10)
			count, err := from.Read(buffer)
			if err != nil {
				return
			}
			line <- piece{buffer[:count], time.Now().Add(delay)}
		}
	}()
	for it := range line {
		time.Sleep(time.Until(it.due))
		_, _ = to.Write(it.content)
	}
	_ = to.Close()
}
