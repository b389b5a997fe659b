//go:build linux

package harness

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"regexp"
	"syscall"
	"testing"

	"github.com/sagernet/netlink"
)

// namespaceVariable tells a test that it runs in a network namespace of its own.
const namespaceVariable = "TARAZU_NAMESPACE"

// InNamespace has a test run as root in a network namespace of its own: the test program is started again for this test
// alone. It returns true there, where the loopback is up and FirstUplink leads to everywhere else, which is nowhere;
// and false where the test is to return.
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
		FirstUplink.Connect(t)
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

// Uplink is an interface that has the default route. What goes there is lost.
type Uplink struct {
	Name string
	// Address with the length of its prefix, and Gateway in the same network.
	Address, Gateway string
	// Metric of the route; the lowest counts.
	Metric int
}

// FirstUplink is that of a new namespace.
var FirstUplink = Uplink{Name: "first", Address: "192.0.2.2/24", Gateway: "192.0.2.1", Metric: 100}

// Connect makes the interface and gives it the default route.
func (u Uplink) Connect(owner Owner) {
	owner.Helper()
	link := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: u.Name}, PeerName: u.Name + "-far"}
	err := netlink.LinkAdd(link)
	if err == nil {
		err = u.configure(link)
	}
	if err != nil {
		owner.Fatalf("make an uplink: %v", err)
	}
}

func (u Uplink) configure(link netlink.Link) error {
	address, err := netlink.ParseAddr(u.Address)
	if err != nil {
		return err
	}
	if err = netlink.AddrAdd(link, address); err != nil {
		return err
	}
	far, err := netlink.LinkByName(u.Name + "-far")
	if err != nil {
		return err
	}
	if err = errors.Join(netlink.LinkSetUp(link), netlink.LinkSetUp(far)); err != nil {
		return err
	}
	return netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Gw: net.ParseIP(u.Gateway), Priority: u.Metric})
}

// Face gives the far end of the uplink the gateway's address, at which a server may then listen.
func (u Uplink) Face(owner Owner) {
	owner.Helper()
	far, err := netlink.LinkByName(u.Name + "-far")
	var address *netlink.Addr
	if err == nil {
		address, err = netlink.ParseAddr(u.Gateway + "/32")
	}
	if err == nil {
		err = netlink.AddrAdd(far, address)
	}
	if err != nil {
		owner.Fatalf("give the far end an address: %v", err)
	}
}

// Disconnect removes the interface, and with it the route.
func (u Uplink) Disconnect(owner Owner) {
	owner.Helper()
	link, err := netlink.LinkByName(u.Name)
	if err == nil {
		err = netlink.LinkDel(link)
	}
	if err != nil {
		owner.Fatalf("remove an uplink: %v", err)
	}
}
