// Package monitoring is the monitor: it tests outbounds in rounds and when asked to, keeps what it learned, shows it to
// the rest of the box and tells the balancers (SPEC S2). It decides nothing for them.
package monitoring

import (
	"context"
	"reflect"
	"slices"
	"sync"
	"time"

	"tarazu/adapter"
	"tarazu/option"

	box "github.com/sagernet/sing-box/adapter"
	boxService "github.com/sagernet/sing-box/adapter/service"
	"github.com/sagernet/sing-box/common/urltest"
	"github.com/sagernet/sing-box/log"
	E "github.com/sagernet/sing/common/exceptions"
	"github.com/sagernet/sing/common/x/list"
	"github.com/sagernet/sing/service"
	"github.com/sagernet/sing/service/pause"
)

// RegisterService adds the monitor to a registry. include hides its type from configurations.
func RegisterService(registry *boxService.Registry) {
	boxService.Register[option.MonitoringServiceOptions](registry, option.TypeMonitoring, NewService)
}

// Service is the monitor of a box. For each set of test settings it has one Monitor (S2.1a).
type Service struct {
	boxService.Adapter
	ctx       context.Context
	options   option.MonitoringServiceOptions
	defaults  option.MonitoringSettings // as testsOf has them
	window    time.Duration
	logger    log.ContextLogger
	outbounds box.OutboundManager
	endpoints box.EndpointManager
	history   *urltest.HistoryStorage // of the box; nil where it has none
	pause     pause.Manager           // of the box; nil where it has none
	watch     *list.Element[pause.Callback]
	traffic   *traffic
	probes    tcpProbes
	cache     cache
	foreign   foreign

	access   sync.Mutex
	monitors []*Monitor
}

// NewService makes the monitor of a box. It tests nothing before the box has started.
func NewService(ctx context.Context, logger log.ContextLogger, tag string, options option.MonitoringServiceOptions) (box.Service, error) {
	s := &Service{
		Adapter:   boxService.NewAdapter(option.TypeMonitoring, tag),
		ctx:       ctx,
		options:   options,
		logger:    logger,
		outbounds: service.FromContext[box.OutboundManager](ctx),
		endpoints: service.FromContext[box.EndpointManager](ctx),
		history:   service.PtrFromContext[urltest.HistoryStorage](ctx),
		pause:     service.FromContext[pause.Manager](ctx),
		traffic:   newTraffic(),
		probes:    newTCPProbes(ctx, options.Servers),
		foreign:   newForeign(),
	}
	defaults, err := option.ResolveMonitoring(&options.Monitoring, nil, options.UnifiedDelay)
	if err != nil {
		return nil, E.Cause(err, tag)
	}
	s.defaults, s.window = testsOf(defaults), defaults.DebounceWindow
	if options.Written {
		// S2.1: what any group reaches is tested, also where no balancer is.
		s.monitor(defaults)
	}
	return s, nil
}

// FromContext returns the monitor for a group with these options of its own, or nil for none. Where the configuration
// has no `experimental.monitoring`, the first group makes the service.
func FromContext(ctx context.Context, group *option.MonitoringOptions) (adapter.Monitor, error) {
	services := service.FromContext[box.ServiceManager](ctx)
	if services == nil {
		return nil, E.New("missing service manager in context")
	}
	it, loaded := services.Get(option.TagMonitoring)
	if !loaded {
		logger := service.FromContext[log.Factory](ctx).NewLogger("monitoring")
		if err := services.Create(ctx, logger, option.TagMonitoring, option.TypeMonitoring, &option.MonitoringServiceOptions{}); err != nil {
			return nil, E.Cause(err, "create the monitor (is the context made by include.Context?)")
		}
		it, _ = services.Get(option.TagMonitoring)
	}
	s, isOurs := it.(*Service)
	if !isOurs {
		return nil, E.New("a service with the reserved tag ", option.TagMonitoring, " exists")
	}
	settings, err := option.ResolveMonitoring(&s.options.Monitoring, group, s.options.UnifiedDelay)
	if err != nil {
		return nil, err
	}
	return s.monitor(settings), nil
}

// testsOf are the settings that say how tests are made. The others are a group's own, whatever it shares.
func testsOf(settings option.MonitoringSettings) option.MonitoringSettings {
	settings.Rise, settings.Fall, settings.DebounceWindow = 0, 0, 0
	return settings
}

// monitor returns a group's side of the Monitor with its settings; groups that share settings share it (S2.1a).
func (s *Service) monitor(settings option.MonitoringSettings) *handle {
	s.access.Lock()
	defer s.access.Unlock()
	tests := testsOf(settings)
	index := slices.IndexFunc(s.monitors, func(it *Monitor) bool { return reflect.DeepEqual(it.settings, tests) })
	if index == -1 {
		index = len(s.monitors)
		s.monitors = append(s.monitors, s.newMonitor(tests))
	}
	monitor := s.monitors[index]
	return &handle{Monitor: monitor, service: s, judge: monitor.judge(settings.Rise, settings.Fall), window: settings.DebounceWindow}
}

func (s *Service) newMonitor(settings option.MonitoringSettings) *Monitor {
	monitor := newMonitor(settings, s.traffic, s.logger)
	isDefault := reflect.DeepEqual(settings, s.defaults)
	monitor.targets = func(groups []string) []string { return s.targets(settings, groups, isDefault && s.options.Written) }
	monitor.probe = func(ctx context.Context, tag string) (time.Duration, error) {
		ctx = withTest(ctx)
		if settings.Probe == option.ProbeTCP {
			return s.probes.probe(ctx, tag)
		}
		detour, loaded := s.outbounds.Outbound(tag)
		if !loaded {
			return 0, E.New("outbound not found: ", tag)
		}
		return urlProbe(ctx, detour, settings)
	}
	monitor.saved = s.save
	if isDefault && s.history != nil {
		monitor.applied = func(tag string) { s.publish(monitor, tag) }
	}
	return monitor
}

// targets returns what groups lead to, each once, in configuration order: outbounds, then endpoints (S2.1, S2.6).
func (s *Service) targets(settings option.MonitoringSettings, groups []string, everyGroup bool) (tags []string) {
	outbounds := s.outbounds.Outbounds()
	reached := make(map[string]bool)
	if everyGroup {
		for _, it := range outbounds {
			if _, isGroup := it.(box.OutboundGroup); isGroup {
				s.reach(it.Tag(), reached)
			}
		}
	}
	for _, group := range groups {
		s.reach(group, reached)
	}
	isTarget := func(tag string) bool {
		// S7.5: a balancer has no member that a TCP probe cannot test; another group may.
		return reached[tag] && (settings.Probe != option.ProbeTCP || s.probes.canTest(tag))
	}
	for _, it := range outbounds {
		if _, isGroup := it.(box.OutboundGroup); !isGroup && isTarget(it.Tag()) {
			tags = append(tags, it.Tag())
		}
	}
	for _, it := range s.endpoints.Endpoints() {
		if isTarget(it.Tag()) {
			tags = append(tags, it.Tag())
		}
	}
	return tags
}

func (s *Service) reach(tag string, reached map[string]bool) {
	if reached[tag] {
		return
	}
	reached[tag] = true
	it, _ := s.outbounds.Outbound(tag)
	if group, isGroup := it.(box.OutboundGroup); isGroup {
		for _, member := range group.All() {
			s.reach(member, reached)
		}
	}
}

// Start reads the cache before the first group chooses, and begins the rounds when the box has started (S2.5).
func (s *Service) Start(stage box.StartStage) error {
	switch stage {
	case box.StartStateInitialize:
		s.load()
	case box.StartStateStarted:
		s.watchForeign()
		if s.pause != nil {
			s.watch = s.pause.RegisterCallback(s.powerChanged)
			s.powerChanged(0)
		}
		for _, monitor := range s.all() {
			monitor.start(s.ctx)
		}
	}
	return nil
}

// Close cancels all tests (S2.7) and writes what is known (S2.8).
func (s *Service) Close() error {
	if s.watch != nil {
		s.pause.UnregisterCallback(s.watch)
		s.watch = nil
	}
	s.foreign.close()
	for _, monitor := range s.all() {
		monitor.close()
	}
	s.closeCache()
	return nil
}

// powerChanged is told by the box's pause manager that device or network went to sleep or woke (S2.5).
// What it says is not what counts: one of the two may sleep on.
func (s *Service) powerChanged(int) {
	paused := s.pause.IsDevicePaused() || s.pause.IsNetworkPaused()
	for _, monitor := range s.all() {
		if paused {
			monitor.leaveNetwork(true)
		} else {
			monitor.resume()
		}
	}
}

// networkChanged has everything tested anew (S2.5).
func (s *Service) networkChanged() {
	for _, monitor := range s.all() {
		monitor.leaveNetwork(false)
	}
}

func (s *Service) all() []*Monitor {
	s.access.Lock()
	defer s.access.Unlock()
	return s.monitors
}
