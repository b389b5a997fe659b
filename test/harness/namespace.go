//go:build linux

package harness

import (
	"errors"
	"os"
	"os/exec"
	"regexp"
	"syscall"
	"testing"

	"github.com/sagernet/netlink"
)

// namespaceVariable tells a test that it runs in a network namespace of its own.
const namespaceVariable = "TARAZU_NAMESPACE"

// InNamespace has a test run as root in a network namespace of its own, in which only the loopback is up: the test
// program is started again for this test alone. It returns true there, and false where the test is to return.
func InNamespace(t *testing.T) bool {
	t.Helper()
	if os.Getenv(namespaceVariable) != "" {
		loopback, err := netlink.LinkByName("lo")
		if err == nil {
			err = netlink.LinkSetUp(loopback)
		}
		if err != nil {
			t.Fatalf("set up the loopback: %v", err)
		}
		return true
	}
	if os.Getuid() != 0 {
		t.Skip("only root can make a network namespace")
	}
	again := exec.Command(os.Args[0], "-test.v", "-test.run=^"+regexp.QuoteMeta(t.Name())+"$")
	again.Env = append(os.Environ(), namespaceVariable+"=1", BinaryVariable+"="+Binary(t))
	again.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	output, err := again.CombinedOutput()
	if errors.Is(err, syscall.EPERM) {
		t.Skip("this machine allows no network namespace")
	}
	if err != nil {
		t.Errorf("in the namespace: %v\n%s", err, output)
	} else {
		t.Logf("in the namespace:\n%s", output)
	}
	return false
}
