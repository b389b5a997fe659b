// Package harness is a laboratory for a balancer: it runs the real program as a process, gives it real protocol servers
// and a faulty one, a target that tells by which way a connection came, and a client that connects through it.
//
// A member is known by a source address of its own, 127.0.0.N, that the target sees. Nothing leaves this machine, and
// nothing waits for a fixed time: waiting means to listen for a line of a log or to look for a condition, with a
// deadline. Tests use it, and a demonstration can (Program).
package harness

import "fmt"

// JSON is an object of a configuration.
type JSON = map[string]any

// Owner is whoever the laboratory is set up for: a *testing.T, or a Program. What was started ends with it.
type Owner interface {
	Helper()
	Errorf(format string, arguments ...any)
	Fatalf(format string, arguments ...any)
	Cleanup(end func())
}

// Address is the source address by which the target knows the member with a number from 1 to 254.
func Address(number int) string {
	return fmt.Sprintf("127.0.0.%d", number)
}
