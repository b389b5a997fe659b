package harness

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Ports are taken from below the range out of which systems give source ports to connections. Each program has a block
// of them for itself, so that none is lost between FreePort and its use; listening on a block's first port holds it.
const (
	lowestPort = 10000
	blockSize  = 2000
	blockCount = 10
)

type portBlock struct {
	holder net.Listener
	first  int
	taken  atomic.Uint32
}

var ownBlock = sync.OnceValues(func() (*portBlock, error) {
	start := rand.IntN(blockCount)
	for i := range blockCount {
		first := lowestPort + (start+i)%blockCount*blockSize
		if holder, err := net.Listen("tcp", Loopback(first)); err == nil {
			return &portBlock{holder: holder, first: first}, nil
		}
	}
	return nil, errors.New("no block of ports is free")
})

// FreePort returns a port of 127.0.0.1 that is free for TCP and UDP.
func FreePort(owner Owner) int {
	owner.Helper()
	block, err := ownBlock()
	if err != nil {
		owner.Fatalf("find a port: %v", err)
		return 0
	}
	for range blockSize {
		port := block.first + 1 + int(block.taken.Add(1))%(blockSize-1)
		if isFree(port) {
			return port
		}
	}
	owner.Fatalf("no free port")
	return 0
}

func isFree(port int) bool {
	listener, err := net.Listen("tcp", Loopback(port))
	if err != nil {
		return false
	}
	defer closeWhole(listener)
	packets, err := net.ListenPacket("udp", Loopback(port))
	if err != nil {
		return false
	}
	closeWhole(packets)
	return true
}

// listenAgain listens on a port that was free a moment ago. A program that is being started may still have a copy of the
// socket that found it free: the system closes those only after it lets go of who starts it.
func listenAgain(port int) (listener net.Listener, err error) {
	deadline := time.Now().Add(patience)
	for {
		listener, err = net.Listen("tcp", Loopback(port))
		if !errors.Is(err, syscall.EADDRINUSE) || time.Now().After(deadline) {
			return listener, err
		}
		runtime.Gosched()
	}
}

// closeWhole closes a socket so that its port is free soon. A program that is being started has a copy of every
// socket until it becomes another program; with the lock held there is hardly one.
func closeWhole(socket io.Closer) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	_ = socket.Close()
}

// Loopback is the address of a port of 127.0.0.1.
func Loopback(port int) string {
	return fmt.Sprintf("127.0.0.1:%d", port)
}
