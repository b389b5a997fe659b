// Package monitoring is the monitor: it tests outbounds in rounds and when asked to, keeps what it learned, shows it to
// the rest of the box and tells the balancers (SPEC S2). It decides nothing for them.
package monitoring

import (
	"context"
	"reflect"
	"sync"
	"time"

	"tarazu/adapter"
	"tarazu/option"

	box "github.com/sagernet/sing-box/adapter"
	boxService "github.com/sagernet/sing-box/adapter/service"
	"github.com/sagernet/sing-box/common/urltest"
	"github.com/sagernet/sing-box/log"
	E "github.com/sagernet/sing/common/exceptions"
	"github.com/sagernet/sing/service"
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
	defaults  option.MonitoringSettings
	logger    log.ContextLogger
	outbounds box.OutboundManager
	endpoints box.EndpointManager
	history   *urltest.HistoryStorage // of the box; nil where it has none

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
	}
	defaults, err := option.ResolveMonitoring(&options.Monitoring, nil, options.UnifiedDelay)
	if err != nil {
		return nil, E.Cause(err, tag)
	}
	s.defaults = defaults
	if options.Written {
		// S2.1: what any group reaches is tested, also where no balancer is.
		if _, err = s.monitor(nil); err != nil {
			return nil, E.Cause(err, tag)
		}
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
	monitor, isOurs := it.(*Service)
	if !isOurs {
		return nil, E.New("a service with the reserved tag ", option.TagMonitoring, " exists")
	}
	return monitor.monitor(group)
}

// monitor returns the Monitor with the settings of a group; groups that share settings share it (S2.1a).
func (s *Service) monitor(group *option.MonitoringOptions) (*Monitor, error) {
	settings, err := option.ResolveMonitoring(&s.options.Monitoring, group, s.options.UnifiedDelay)
	if err != nil {
		return nil, err
	}
	if settings.Probe == option.ProbeTCP {
		return nil, E.New("probe: tcp is not available in this version; allowed: url")
	}
	s.access.Lock()
	defer s.access.Unlock()
	for _, it := range s.monitors {
		if reflect.DeepEqual(it.settings, settings) {
			return it, nil
		}
	}
	monitor := newMonitor(settings, s.logger)
	isDefault := reflect.DeepEqual(settings, s.defaults)
	monitor.targets = func(groups []string) []string { return s.targets(groups, isDefault && s.options.Written) }
	monitor.probe = func(ctx context.Context, tag string) (time.Duration, error) {
		detour, loaded := s.outbounds.Outbound(tag)
		if !loaded {
			return 0, E.New("outbound not found: ", tag)
		}
		return urlProbe(ctx, detour, settings)
	}
	monitor.publish = func(tag string, result adapter.Result) {
		if isDefault && s.history != nil {
			s.publish(tag, result)
		}
	}
	s.monitors = append(s.monitors, monitor)
	return monitor, nil
}

// publish shows a result to `urltest` groups, the Clash API and the API service (S2.2); a failure removes it (S2.4).
func (s *Service) publish(tag string, result adapter.Result) {
	if result.State == adapter.StateUp {
		s.history.StoreURLTestHistory(tag, &box.URLTestHistory{Time: result.Tested, Delay: result.Delay})
	} else {
		s.history.DeleteURLTestHistory(tag)
	}
}

// targets returns what groups lead to, each once, in configuration order: outbounds, then endpoints (S2.1, S2.6).
func (s *Service) targets(groups []string, everyGroup bool) (tags []string) {
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
	for _, it := range outbounds {
		if _, isGroup := it.(box.OutboundGroup); !isGroup && reached[it.Tag()] {
			tags = append(tags, it.Tag())
		}
	}
	for _, it := range s.endpoints.Endpoints() {
		if reached[it.Tag()] {
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

// Start begins the rounds when the box has started (S2.5).
func (s *Service) Start(stage box.StartStage) error {
	if stage != box.StartStateStarted {
		return nil
	}
	for _, monitor := range s.all() {
		monitor.start(s.ctx)
	}
	return nil
}

// Close cancels all tests (S2.7).
func (s *Service) Close() error {
	for _, monitor := range s.all() {
		monitor.close()
	}
	return nil
}

func (s *Service) all() []*Monitor {
	s.access.Lock()
	defer s.access.Unlock()
	return s.monitors
}
