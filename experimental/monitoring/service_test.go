package monitoring

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"tarazu/adapter"
	"tarazu/option"

	box "github.com/sagernet/sing-box/adapter"
	"github.com/sagernet/sing-box/adapter/endpoint"
	"github.com/sagernet/sing-box/adapter/outbound"
	"github.com/sagernet/sing-box/common/urltest"
	C "github.com/sagernet/sing-box/constant"
	"github.com/sagernet/sing-box/experimental/cachefile"
	"github.com/sagernet/sing-box/log"
	boxOption "github.com/sagernet/sing-box/option"
	"github.com/sagernet/sing-box/protocol/block"
	"github.com/sagernet/sing-box/protocol/group"
	M "github.com/sagernet/sing/common/metadata"
	"github.com/sagernet/sing/service"
	"github.com/sagernet/sing/service/pause"
)

// laboratory is a monitor among sing-box's own parts, in virtual time; only what tests meet is made up.
type laboratory struct {
	t       *testing.T
	ctx     context.Context
	pause   pause.Manager
	history *urltest.HistoryStorage
	network *network
	service *Service
	group   *listener
	handle  *handle
}

// tunnel is an endpoint.
type tunnel struct {
	endpoint.Adapter
}

func (t *tunnel) Start(box.StartStage) error { return nil }
func (t *tunnel) Close() error               { return nil }

func (t *tunnel) DialContext(context.Context, string, M.Socksaddr) (net.Conn, error) {
	return nil, errRefused
}

func (t *tunnel) ListenPacket(context.Context, M.Socksaddr) (net.PacketConn, error) {
	return nil, errRefused
}

// labour runs a story with outbounds "a" to "c", an endpoint "tunnel", a selector "pick" over a and b, and a group that
// leads to all. With a path there is a cache file.
func labour(t *testing.T, options option.MonitoringServiceOptions, path string, story func(t *testing.T, l *laboratory)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := &laboratory{t: t, network: newNetwork("a", "b", "c", "tunnel"), group: new(listener)}
		outbounds, endpoints := outbound.NewRegistry(), endpoint.NewRegistry()
		block.RegisterOutbound(outbounds)
		group.RegisterSelector(outbounds)
		endpoint.Register(endpoints, "tunnel", func(_ context.Context, _ box.Router, _ log.ContextLogger, tag string, _ boxOption.StubOptions) (box.Endpoint, error) {
			return &tunnel{endpoint.NewAdapter("tunnel", tag, []string{"tcp"}, nil)}, nil
		})
		l.ctx = pause.WithDefaultManager(service.ContextWithDefaultRegistry(t.Context()))
		l.pause = service.FromContext[pause.Manager](l.ctx)
		l.history = urltest.NewHistoryStorage()
		l.ctx = service.ContextWithPtr(l.ctx, l.history)
		logger := log.NewNOPFactory().NewLogger("")
		endpointManager := endpoint.NewManager(logger, endpoints)
		manager := outbound.NewManager(logger, outbounds, endpointManager, "a")
		l.ctx = service.ContextWith[box.EndpointManager](l.ctx, endpointManager)
		l.ctx = service.ContextWith[box.OutboundManager](l.ctx, manager)
		for _, it := range []struct {
			tag, kind string
			options   any
		}{
			{"a", C.TypeBlock, &boxOption.StubOptions{}},
			{"b", C.TypeBlock, &boxOption.StubOptions{}},
			{"pick", C.TypeSelector, &boxOption.SelectorOutboundOptions{Outbounds: []string{"a", "b"}}},
			{"c", C.TypeBlock, &boxOption.StubOptions{}},
			{"unused", C.TypeBlock, &boxOption.StubOptions{}},
			{"group", C.TypeSelector, &boxOption.SelectorOutboundOptions{Outbounds: []string{"tunnel", "c", "pick"}}},
		} {
			l.must(manager.Create(l.ctx, nil, logger, it.tag, it.kind, it.options))
		}
		l.must(endpointManager.Create(l.ctx, nil, logger, "tunnel", "tunnel", &boxOption.StubOptions{}))
		if path != "" {
			if _, err := os.Stat(path); err == nil {
				pass(laterRun) // each story begins at the same time
			}
			file := cachefile.New(l.ctx, logger, boxOption.CacheFileOptions{Path: path})
			l.must(file.Start(box.StartStateInitialize))
			defer file.Close()
			l.ctx = service.ContextWith[box.CacheFile](l.ctx, file)
		}
		it, err := NewService(l.ctx, logger, option.TagMonitoring, options)
		l.must(err)
		l.service = it.(*Service)
		l.handle = l.join(l.group, nil)
		l.must(l.service.Start(box.StartStateInitialize))
		for _, stage := range []box.StartStage{box.StartStateInitialize, box.StartStateStart} {
			l.must(manager.Start(stage))
		}
		defer l.service.Close() // again does no harm
		story(t, l)
		l.must(l.service.Close())
	})
}

func (l *laboratory) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// join adds a group with settings of its own, or nil for none.
func (l *laboratory) join(group *listener, own *option.MonitoringOptions) *handle {
	l.t.Helper()
	settings, err := option.ResolveMonitoring(&l.service.options.Monitoring, own, l.service.options.UnifiedDelay)
	l.must(err)
	settings.Jitter = 0
	handle := l.service.monitor(settings)
	handle.probe = l.network.probe
	handle.Subscribe(group)
	return handle
}

func (l *laboratory) start() {
	l.t.Helper()
	l.must(l.service.Start(box.StartStateStarted))
}

// foreign puts somebody else's result into the storage; 0 is a failure.
func (l *laboratory) foreign(tag string, delay uint16) {
	if delay == 0 {
		l.history.DeleteURLTestHistory(tag)
	} else {
		l.history.StoreURLTestHistory(tag, &box.URLTestHistory{Time: time.Now(), Delay: delay})
	}
}

func (l *laboratory) published(tag string) uint16 {
	if entry := l.history.LoadURLTestHistory(tag); entry != nil {
		return entry.Delay
	}
	return 0
}

// results are what the group was told of tests.
func (l *laboratory) results(group *listener) []string {
	return slices.DeleteFunc(group.told(), func(line string) bool { return line == "reach" })
}

// laterRun is when a run begins that finds a cache file, after the beginning of the run that wrote it.
const laterRun = 2 * time.Hour

func quietly() option.MonitoringServiceOptions {
	return option.MonitoringServiceOptions{Monitoring: option.MonitoringOptions{
		Interval: duration(time.Hour), IdleTimeout: duration(0), Workers: new(1), Jitter: new(0.0),
	}}
}

func TestService_S2_1_EachOnceInConfigurationOrder(t *testing.T) {
	labour(t, quietly(), "", func(t *testing.T, l *laboratory) {
		for range 20 { // a member in 20 groups
			l.join(new(listener), nil)
		}
		l.start()
		pass(time.Second)
		expect(t, l.network.tests(), "a", "b", "c", "tunnel")
		if l.published("a") != 10 || l.published("tunnel") != 40 || l.published("unused") != 0 {
			t.Fatal("not published")
		}
	})
}

func TestService_S2_1_WithoutAGroupNothing(t *testing.T) {
	labour(t, quietly(), "", func(t *testing.T, l *laboratory) {
		l.handle.judge.groups = nil
		l.start()
		pass(time.Second)
		expect(t, l.network.tests())
	})
	written := quietly()
	written.Written = true
	labour(t, written, "", func(t *testing.T, l *laboratory) {
		l.handle.judge.groups = nil
		l.start()
		pass(time.Second)
		expect(t, l.network.tests(), "a", "b", "c", "tunnel") // what any group reaches
	})
}

func TestService_S2_1a_OwnSettingsOwnResults(t *testing.T) {
	labour(t, quietly(), "", func(t *testing.T, l *laboratory) {
		own, other := new(listener), new(listener)
		theirs := l.join(own, &option.MonitoringOptions{URLs: []string{"http://127.0.0.1/other"}, Fall: new(3)})
		theirs.probe = func(ctx context.Context, tag string) (time.Duration, error) { return 0, errRefused }
		shared := l.join(other, &option.MonitoringOptions{Fall: new(3), DebounceWindow: duration(time.Second)})
		if shared.Monitor != l.handle.Monitor || shared.DebounceWindow() != time.Second || theirs.Monitor == l.handle.Monitor {
			t.Fatal("groups that test alike share their tests, and only they")
		}
		l.start()
		pass(time.Second)
		expect(t, l.network.tests(), "a", "b", "c", "tunnel") // once for two groups
		if mine, its := l.handle.Result("a"), theirs.Result("a"); mine.State != adapter.StateUp || its.State != adapter.StateDown {
			t.Fatal(mine, its)
		}
		if l.published("a") != 10 { // what is published is the default's
			t.Fatal(l.published("a"))
		}
		// The same failure, judged by two.
		l.network.set("a", time.Millisecond, errRefused)
		l.handle.DialFailed("a")
		pass(time.Second)
		if mine, its := l.handle.Result("a"), shared.Result("a"); mine.State != adapter.StateDown || its.State != adapter.StateUp {
			t.Fatal(mine, its)
		}
	})
}

func TestService_S2_2_ForeignSuccessIsTakenIn(t *testing.T) {
	labour(t, quietly(), "", func(t *testing.T, l *laboratory) {
		own := new(listener)
		theirs := l.join(own, &option.MonitoringOptions{URLs: []string{"http://127.0.0.1/other"}})
		tests := 0
		theirs.probe = func(ctx context.Context, tag string) (time.Duration, error) {
			tests++
			return 7 * time.Millisecond, nil
		}
		l.start()
		pass(time.Second)
		l.results(l.group)
		l.results(own)
		l.network.tests()
		tests = 0
		l.foreign("c", 33)
		l.foreign("unused", 33)
		pass(250 * time.Millisecond) // within the window
		expect(t, l.results(l.group), "outside c up 33")
		expect(t, l.network.tests())
		// A group with settings of its own takes no foreign figure: it tests.
		expect(t, l.results(own), "outside c up 7")
		if tests != 1 {
			t.Fatal(tests, " tests")
		}
		pass(time.Minute)
		expect(t, l.results(l.group)) // nothing comes back
		if l.published("c") != 33 {
			t.Fatal(l.published("c"))
		}
		l.foreign("c", 65535)
		l.handle.Refresh() // as an API does that made the test
		expect(t, l.results(l.group), "outside c up 65534")
	})
}

// FIELD case 28: a dashboard's test with a URL that is blocked kills nobody whose own test is fine.
func TestService_S2_3_ForeignFailureIsConfirmed(t *testing.T) {
	labour(t, quietly(), "", func(t *testing.T, l *laboratory) {
		l.start()
		pass(time.Second)
		l.results(l.group)
		l.network.tests()
		l.foreign("a", 0)
		l.foreign("c", 0)
		l.network.set("c", 5*time.Millisecond, errRefused)
		pass(time.Second)
		expect(t, slices.Sorted(slices.Values(l.network.tests())), "a", "c")
		expect(t, slices.Sorted(slices.Values(l.results(l.group))), "outside a up 10", "outside c down 30refused")
		if l.published("a") != 10 || l.published("c") != 0 {
			t.Fatal(l.published("a"), l.published("c"))
		}
		l.foreign("c", 0) // it was not there
		pass(time.Second)
		expect(t, l.network.tests())
	})
}

// A hook that was full dropped signals: comparing finds what changed all the same.
func TestService_S2_2_ManyForeignResultsAtOnce(t *testing.T) {
	labour(t, quietly(), "", func(t *testing.T, l *laboratory) {
		l.start()
		pass(time.Second)
		l.results(l.group)
		for i := range 1000 {
			l.foreign([]string{"a", "b", "c", "tunnel"}[i%4], uint16(1+i))
		}
		pass(time.Second)
		expect(t, slices.Sorted(slices.Values(l.results(l.group))),
			"outside a up 997", "outside b up 998", "outside c up 999", "outside tunnel up 1000")
	})
}

func TestService_S2_3_GroupTestIsTheGroupsOwn(t *testing.T) {
	labour(t, quietly(), "", func(t *testing.T, l *laboratory) {
		l.start()
		pass(time.Second)
		l.results(l.group)
		l.network.tests()
		l.network.set("a", time.Hour, nil)
		began := time.Now()
		expect(t, l.handle.Test(t.Context(), "pick"), "a", "b")
		if took := time.Since(began); took > 6*time.Second {
			t.Fatal(took)
		}
		expect(t, slices.Sorted(slices.Values(l.network.tests())), "a", "b")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began = time.Now()
		l.handle.Test(ctx, "pick") // whoever asks waits no longer than they want
		if took := time.Since(began); took != time.Second {
			t.Fatal(took)
		}
	})
}

// S5.4: a selection reaches the groups around it at once.
func TestService_SelectionIsToldAtOnce(t *testing.T) {
	labour(t, quietly(), "", func(t *testing.T, l *laboratory) {
		l.start()
		pass(time.Second)
		l.group.told()
		it, _ := l.service.outbounds.Outbound("pick")
		it.(*group.Selector).SelectOutbound("b")
		synctest.Wait()
		expect(t, l.group.told(), "reach")
	})
}

func TestService_S2_5_PauseManager(t *testing.T) {
	labour(t, quietly(), "", func(t *testing.T, l *laboratory) {
		l.pause.NetworkPause()
		l.start()
		pass(2 * time.Hour)
		expect(t, l.network.tests())
		l.pause.NetworkWake()
		pass(time.Second)
		expect(t, l.network.tests(), "a", "b", "c", "tunnel")
		l.pause.DevicePause()
		pass(5 * time.Hour)
		expect(t, l.network.tests())
		l.pause.DeviceWake()
		pass(time.Second)
		expect(t, l.network.tests(), "a", "b", "c", "tunnel")
		l.handle.NetworkChanged()
		pass(time.Second)
		expect(t, l.network.tests(), "a", "b", "c", "tunnel")
	})
}

// One of the two is over while the other is not.
func TestService_S2_5_DeviceAndNetworkPaused(t *testing.T) {
	labour(t, quietly(), "", func(t *testing.T, l *laboratory) {
		l.start()
		pass(time.Second)
		l.network.tests()
		l.pause.DevicePause()
		l.pause.NetworkPause()
		l.pause.NetworkWake()
		pass(time.Hour)
		expect(t, l.network.tests())
		l.pause.DeviceWake()
		pass(time.Second)
		expect(t, l.network.tests(), "a", "b", "c", "tunnel")
	})
}

// FIELD case 15: a test's own connections through a group are no traffic, those of anybody else are.
func TestService_S1_4_TestsAreNoTraffic(t *testing.T) {
	options := quietly()
	options.Monitoring.Interval, options.Monitoring.IdleTimeout = duration(time.Minute), duration(5*time.Minute)
	labour(t, options, "", func(t *testing.T, l *laboratory) {
		l.handle.probe = func(ctx context.Context, tag string) (time.Duration, error) {
			l.handle.Touch(withTest(ctx)) // by way of a group
			return l.network.probe(ctx, tag)
		}
		l.start()
		pass(time.Hour)
		if rounds := len(l.network.tests()) / 4; rounds != 5 {
			t.Fatal(rounds, " rounds without traffic")
		}
		l.handle.Touch(t.Context())
		pass(time.Second)
		expect(t, l.network.tests(), "a", "b", "c", "tunnel")
	})
}

func cachePath(t *testing.T) string {
	return filepath.Join(t.TempDir(), "cache.db")
}
