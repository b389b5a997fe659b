package harness

import (
	"crypto/tls"
	"net"
	"sync"

	"github.com/miekg/dns"
)

// Names is a DNS server of 127.0.0.1 that can be told to misbehave for a name.
type Names struct {
	// Port on which it listens, UDP and TCP, and TLSPort, on which it listens for TLS.
	Port, TLSPort int

	certificate Certificate
	access      sync.Mutex
	answers     map[string][]string // by name; none is an error
	hangs       map[string]bool
	asked       map[string]int
}

// StartNames runs a DNS server that knows no name yet.
func StartNames(owner Owner) *Names {
	owner.Helper()
	n := &Names{
		Port: FreePort(owner), TLSPort: FreePort(owner), certificate: SelfSigned(owner),
		answers: make(map[string][]string), hangs: make(map[string]bool), asked: make(map[string]int),
	}
	own, err := n.certificate.pair()
	if err != nil {
		owner.Fatalf("use a certificate: %v", err)
	}
	for network, port := range map[string]int{"udp": n.Port, "tcp": n.Port, "tcp-tls": n.TLSPort} {
		started, ended := make(chan struct{}), make(chan error, 1)
		server := &dns.Server{
			Addr: Loopback(port), Net: network, Handler: dns.HandlerFunc(n.answer),
			TLSConfig:         &tls.Config{Certificates: []tls.Certificate{own}},
			NotifyStartedFunc: func() { close(started) },
		}
		go func() { ended <- server.ListenAndServe() }()
		select {
		case <-started:
			owner.Cleanup(func() { _ = server.Shutdown() })
		case err := <-ended:
			owner.Fatalf("listen for names: %v", err)
		}
	}
	return n
}

// Server is the DNS server, for a configuration; network is udp, tcp or tls.
func (n *Names) Server(tag, network string) JSON {
	server := JSON{"type": network, "tag": tag, "server": "127.0.0.1", "server_port": n.Port}
	if network == "tls" {
		server["server_port"] = n.TLSPort
		server["tls"] = JSON{"server_name": ServerName, "certificate": n.certificate.Certificate}
	}
	return server
}

// Set has a name answered with IPv4 addresses, or, with none, with an error.
func (n *Names) Set(name string, addresses ...string) {
	n.access.Lock()
	defer n.access.Unlock()
	n.answers[dns.Fqdn(name)], n.hangs[dns.Fqdn(name)] = addresses, false
}

// Hang has questions for a name never answered.
func (n *Names) Hang(name string) {
	n.access.Lock()
	defer n.access.Unlock()
	n.hangs[dns.Fqdn(name)] = true
}

// Asked counts the questions for a name.
func (n *Names) Asked(name string) int {
	n.access.Lock()
	defer n.access.Unlock()
	return n.asked[dns.Fqdn(name)]
}

func (n *Names) answer(writer dns.ResponseWriter, question *dns.Msg) {
	name := question.Question[0].Name
	n.access.Lock()
	addresses, hangs := n.answers[name], n.hangs[name]
	n.asked[name]++
	n.access.Unlock()
	if hangs {
		return
	}
	answer := new(dns.Msg)
	answer.SetReply(question)
	if addresses == nil {
		answer.Rcode = dns.RcodeServerFailure
	}
	if question.Question[0].Qtype == dns.TypeA {
		for _, address := range addresses {
			answer.Answer = append(answer.Answer, &dns.A{
				Hdr: dns.RR_Header{Name: name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 0},
				A:   net.ParseIP(address),
			})
		}
	}
	_ = writer.WriteMsg(answer)
}
