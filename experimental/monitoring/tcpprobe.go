package monitoring

import (
	"context"
	"sync"
	"time"

	"tarazu/option"

	box "github.com/sagernet/sing-box/adapter"
	"github.com/sagernet/sing-box/common/dialer"
	"github.com/sagernet/sing/common"
	E "github.com/sagernet/sing/common/exceptions"
	M "github.com/sagernet/sing/common/metadata"
	N "github.com/sagernet/sing/common/network"
	"github.com/sagernet/sing/service"
)

// tcpProbes tests whether outbounds' servers accept TCP connections (SPEC S7.5, `probe: tcp`), by way of each outbound's
// own dialer options.
type tcpProbes struct {
	ctx     context.Context
	servers map[string]option.TCPServer
	access  *sync.Mutex
	dialers map[string]N.Dialer
}

func newTCPProbes(ctx context.Context, servers map[string]option.TCPServer) tcpProbes {
	return tcpProbes{ctx: ctx, servers: servers, access: new(sync.Mutex), dialers: make(map[string]N.Dialer)}
}

// canTest reports whether an outbound has a server to connect to.
func (p *tcpProbes) canTest(tag string) bool {
	_, has := p.servers[tag]
	return has
}

// probe connects to an outbound's server, to all of its addresses in order until one accepts, and sends nothing. ctx
// bounds it all; an address that does not answer gets an even share of what is left. The time is that of connecting.
func (p *tcpProbes) probe(ctx context.Context, tag string) (elapsed time.Duration, err error) {
	server, has := p.servers[tag]
	if !has {
		return 0, E.New("no TCP endpoint to connect to")
	}
	destination := M.ParseSocksaddrHostPort(server.Server, server.ServerPort)
	direct, err := p.dialer(tag, server, destination.IsDomain())
	if err != nil {
		return 0, err
	}
	resolving, resolves := direct.(dialer.ResolveDialer)
	if !resolves || !destination.IsDomain() {
		return connect(ctx, direct, destination)
	}
	router := service.FromContext[box.DNSRouter](p.ctx)
	addresses, err := router.Lookup(ctx, destination.Fqdn, resolving.QueryOptions())
	if err != nil {
		return 0, err
	}
	direct = resolving.(common.WithUpstream).Upstream().(N.Dialer)
	for i, address := range addresses {
		share := ctx
		if deadline, bounded := ctx.Deadline(); bounded {
			var cancel context.CancelFunc
			share, cancel = context.WithTimeout(ctx, time.Until(deadline)/time.Duration(len(addresses)-i))
			defer cancel()
		}
		elapsed, err = connect(share, direct, M.SocksaddrFrom(address, destination.Port))
		if err == nil {
			break
		}
	}
	return elapsed, err
}

func connect(ctx context.Context, through N.Dialer, destination M.Socksaddr) (time.Duration, error) {
	start := time.Now()
	conn, err := through.DialContext(ctx, N.NetworkTCP, destination)
	if err != nil {
		return 0, err
	}
	elapsed := time.Since(start)
	_ = conn.Close()
	return elapsed, nil
}

func (p *tcpProbes) dialer(tag string, server option.TCPServer, isDomain bool) (N.Dialer, error) {
	p.access.Lock()
	defer p.access.Unlock()
	if it, made := p.dialers[tag]; made {
		return it, nil
	}
	it, err := dialer.New(p.ctx, server.Dialer, isDomain)
	if err != nil {
		return nil, E.Cause(err, "connect as ", tag, " does")
	}
	p.dialers[tag] = it
	return it, nil
}
