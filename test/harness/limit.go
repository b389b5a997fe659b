//go:build linux

package harness

import "golang.org/x/sys/unix"

// Limit lets a running program have so many descriptors, until it is given more.
func (p *Process) Limit(descriptors int) {
	p.owner.Helper()
	var limit unix.Rlimit
	err := unix.Prlimit(p.command.Process.Pid, unix.RLIMIT_NOFILE, nil, &limit)
	if err == nil {
		limit.Cur = uint64(descriptors)
		err = unix.Prlimit(p.command.Process.Pid, unix.RLIMIT_NOFILE, &limit, nil)
	}
	if err != nil {
		p.owner.Fatalf("limit descriptors: %v", err)
	}
}
