package harness

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"
)

// Client connects through the mixed inbound of a program under test.
type Client struct {
	// Inbound is the address of the mixed inbound.
	Inbound string
	// User of the inbound, where it asks for one.
	User *url.Userinfo
	// Timeout of one request.
	Timeout time.Duration
}

// NewClient returns a client of the mixed inbound at a port of 127.0.0.1.
func NewClient(port int) *Client {
	return &Client{Inbound: Loopback(port), Timeout: 5 * time.Second}
}

// Get makes a request through a connection of its own and returns the body: the address that the target saw.
func (c *Client) Get(link string) (string, error) {
	proxy := &url.URL{Scheme: "socks5", User: c.User, Host: c.Inbound}
	transport := &http.Transport{Proxy: http.ProxyURL(proxy), DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(context.Background(), c.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, link, nil)
	if err != nil {
		return "", err
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("the target answers %s", response.Status)
	}
	return string(body), nil
}

// Shares makes requests one after another and returns how many came from each address. All have to succeed.
func (c *Client) Shares(owner Owner, link string, count int) map[string]int {
	owner.Helper()
	shares := make(map[string]int)
	for i := range count {
		source, err := c.Get(link)
		if err != nil {
			owner.Fatalf("connection %d of %d: %v", i+1, count, err)
		}
		shares[source]++
	}
	return shares
}

// Hear connects to a target that speaks first, says nothing and returns what the target says: the address that it saw.
func (c *Client) Hear(destination string) (string, error) {
	target, err := netip.ParseAddrPort(destination)
	if err != nil {
		return "", err
	}
	conn, err := net.DialTimeout("tcp", c.Inbound, c.Timeout)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(c.Timeout))
	if _, err = requestSOCKS(conn, socksConnect, target); err != nil {
		return "", err
	}
	greeting, err := io.ReadAll(conn)
	return string(greeting), err
}

// Exchange sends a packet to a UDP target through an association of its own and returns the answer: the address that
// the target saw.
func (c *Client) Exchange(destination string) (string, error) {
	association, err := c.associate(destination)
	if err != nil {
		return "", err
	}
	defer association.Leave()
	return association.Ask()
}

// Association is one of SOCKS5 through a program, to an Echo.
type Association struct {
	// control is the connection with which it lives.
	control net.Conn
	packets net.Conn
	target  netip.AddrPort
	timeout time.Duration
}

// Associate opens an association, which ends with the owner.
func (c *Client) Associate(owner Owner, destination string) *Association {
	owner.Helper()
	association, err := c.associate(destination)
	if err != nil {
		owner.Fatalf("associate: %v", err)
	}
	owner.Cleanup(association.Leave)
	return association
}

func (c *Client) associate(destination string) (*Association, error) {
	target, err := netip.ParseAddrPort(destination)
	if err != nil {
		return nil, err
	}
	control, err := net.DialTimeout("tcp", c.Inbound, c.Timeout)
	if err != nil {
		return nil, err
	}
	_ = control.SetDeadline(time.Now().Add(c.Timeout))
	relay, err := requestSOCKS(control, socksAssociate, netip.AddrPortFrom(netip.IPv4Unspecified(), 0))
	if err != nil {
		_ = control.Close()
		return nil, err
	}
	packets, err := net.Dial("udp", relay)
	if err != nil {
		_ = control.Close()
		return nil, err
	}
	return &Association{control, packets, target, c.Timeout}, nil
}

// Ask sends a packet and returns the answer: the address that the target saw.
func (a *Association) Ask() (string, error) {
	_ = a.packets.SetDeadline(time.Now().Add(a.timeout))
	if _, err := a.packets.Write(append(appendAddress(make([]byte, socksPacketOverhead), a.target), "who am I?"...)); err != nil {
		return "", err
	}
	buffer := make([]byte, 2048)
	count, err := a.packets.Read(buffer)
	if err != nil {
		return "", err
	}
	if count < socksPacketOverhead {
		return "", io.ErrUnexpectedEOF
	}
	answer := bytes.NewReader(buffer[socksPacketOverhead:count])
	if _, err = readAddress(answer); err != nil {
		return "", err
	}
	body, err := io.ReadAll(answer)
	return string(body), err
}

// EndsWithin reports whether the program ends the association within a time.
func (a *Association) EndsWithin(within time.Duration) bool {
	return endsWithin(a.control, within)
}

// Leave ends the association.
func (a *Association) Leave() {
	_ = a.packets.Close()
	_ = a.control.Close()
}
