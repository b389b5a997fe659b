package harness

import (
	"fmt"
	"maps"
)

// Server is a real protocol server: the same program in a process of its own, which connects to targets from an address
// of its own.
type Server struct {
	// Tag of the outbound.
	Tag string
	// Address by which the target knows the server.
	Address string
	// Port on which the server listens.
	Port int
	// Process that runs it.
	Process *Process

	outbound JSON
}

// StartServer runs a server of a protocol, whose connections come from Address(number).
func StartServer(owner Owner, protocol string, number int) *Server {
	owner.Helper()
	inbound, outbound := protocolPair(owner, protocol)
	s := &Server{Tag: fmt.Sprint(protocol, "-", number), Address: Address(number), Port: FreePort(owner)}
	maps.Copy(inbound, JSON{"type": protocol, "listen": "127.0.0.1", "listen_port": s.Port})
	maps.Copy(outbound, JSON{"type": protocol, "tag": s.Tag, "server": "127.0.0.1", "server_port": s.Port})
	s.outbound = outbound
	s.Process = StartReady(owner, JSON{
		"log":       JSON{"level": "info"},
		"inbounds":  []JSON{inbound},
		"outbounds": []JSON{{"type": "direct", "inet4_bind_address": s.Address}},
	})
	s.Process.quiet = true
	return s
}

// Outbound is the client's side, for a configuration.
func (s *Server) Outbound() JSON {
	return maps.Clone(s.outbound)
}

// Stop ends the server at once, as a crash does.
func (s *Server) Stop() {
	s.Process.Kill()
}

// Start runs a server again that was stopped, on the same port.
func (s *Server) Start() {
	s.Process.owner.Helper()
	s.Process.Again()
	s.Process.AwaitReady()
}
