package monitoring

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/url"
	"time"

	"tarazu/option"

	box "github.com/sagernet/sing-box/adapter"
	"github.com/sagernet/sing/common"
	E "github.com/sagernet/sing/common/exceptions"
	M "github.com/sagernet/sing/common/metadata"
	N "github.com/sagernet/sing/common/network"
	"github.com/sagernet/sing/common/ntp"
)

// maxHeader is the most that a test reads of an answer.
const maxHeader = 8 << 10

// buffer is enough for most of them.
const buffer = 1 << 10

// urlProbe tests an outbound by an HTTP request through it (SPEC S1.4, `probe: url`). The URLs are tried in order and
// the first that answers decides; ctx bounds them all. The time is that of the request and of opening its connection.
func urlProbe(ctx context.Context, detour N.Dialer, settings option.MonitoringSettings) (time.Duration, error) {
	multiplex, isMultiplex := common.Cast[box.OutboundWithMultiplex](detour)
	if isMultiplex && multiplex.MultiplexEnabled() {
		// The session that later connections share is opened first, so that its cost is not measured.
		if _, err := requestAny(ctx, detour, settings); err != nil {
			return 0, err
		}
	}
	return requestAny(ctx, detour, settings)
}

func requestAny(ctx context.Context, detour N.Dialer, settings option.MonitoringSettings) (elapsed time.Duration, err error) {
	for _, link := range settings.URLs {
		if elapsed, err = request(ctx, detour, link, settings); err == nil || ctx.Err() != nil {
			break
		}
	}
	return elapsed, err
}

func request(ctx context.Context, detour N.Dialer, link string, settings option.MonitoringSettings) (time.Duration, error) {
	target, err := url.Parse(link)
	if err != nil {
		return 0, err
	}
	port := target.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[target.Scheme]
	}
	start := time.Now()
	conn, err := detour.DialContext(ctx, N.NetworkTCP, M.ParseSocksaddrHostPortStr(target.Hostname(), port))
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	if N.NeedHandshakeForWrite(conn) {
		// Nothing was sent yet: the request carries the handshake.
		start = time.Now()
	}
	var unused net.Conn = newClientFirst(conn)
	transport := &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			if unused == nil {
				return nil, errConnectionEnded
			}
			defer func() { unused = nil }()
			return unused, nil
		},
		TLSClientConfig:        &tls.Config{Time: ntp.TimeFuncFromContext(ctx), RootCAs: box.RootPoolFromContext(ctx)},
		MaxResponseHeaderBytes: maxHeader,
		ReadBufferSize:         buffer,
		WriteBufferSize:        buffer,
	}
	defer transport.CloseIdleConnections()
	if err = head(ctx, transport, link, settings.ExpectedStatus); err != nil {
		return 0, err
	}
	elapsed := time.Since(start)
	if !settings.UnifiedDelay {
		return elapsed, nil
	}
	// S1.4a: the second request on the same connection is measured. A server that keeps none has the first count.
	start = time.Now()
	switch err = head(ctx, transport, link, settings.ExpectedStatus); {
	case errors.Is(err, errConnectionEnded):
		return elapsed, nil
	case err != nil:
		return 0, err
	}
	return time.Since(start), nil
}

var errConnectionEnded = errors.New("the server ended the connection")

// head asks for a URL without following redirects and checks the status.
func head(ctx context.Context, transport *http.Transport, link string, expected []option.StatusRange) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, link, nil)
	if err != nil {
		return err
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return err
	}
	_ = response.Body.Close()
	if len(expected) == 0 {
		return nil
	}
	for _, statuses := range expected {
		if response.StatusCode >= statuses.Low && response.StatusCode <= statuses.High {
			return nil
		}
	}
	return E.New("unexpected status ", response.Status)
}
