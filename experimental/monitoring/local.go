package monitoring

import (
	"errors"
	"syscall"
)

// localFailures are errors of this machine: no route, no usable interface, out of descriptors or buffers, an address
// family or address that is not available here (SPEC S2.5a). "No route to host" is not among them: a router on the way
// to one member says it too.
var localFailures = []error{
	syscall.ENETUNREACH, syscall.ENETDOWN, syscall.EADDRNOTAVAIL, syscall.EAFNOSUPPORT,
	syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM,
}

// IsLocal reports whether an error is a failure of this machine, which counts against nobody (SPEC S2.5a).
func IsLocal(err error) bool {
	for _, failure := range localFailures {
		if errors.Is(err, failure) {
			return true
		}
	}
	return false
}
