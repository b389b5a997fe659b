package monitoring

import (
	"encoding/json"
	"math"
	"sync"
	"time"

	"tarazu/adapter"
	"tarazu/option"

	box "github.com/sagernet/sing-box/adapter"
	E "github.com/sagernet/sing/common/exceptions"
	"github.com/sagernet/sing/service"
)

// cacheTag is where the results are in sing-box's cache file: among its rule sets, under a tag that no rule set has.
// Anything else in the file is deleted at the next start.
const cacheTag = "experimental.monitoring: results"

const cacheVersion = 1

// cachedFor is how old a result may be when it is read (S2.8).
const cachedFor = 24 * time.Hour

// cache keeps results across restarts, where the box has a cache file (S1.5).
type cache struct {
	file   box.CacheFile // nil where there is none, or after the end
	access sync.Mutex
}

// cachedResults are the successful results of all monitors, as they are written.
type cachedResults struct {
	Version  int             `json:"version"`
	Monitors []cachedMonitor `json:"monitors"`
}

// cachedMonitor are those of one monitor. What they were tested by goes with them: a result got with another URL says
// nothing.
type cachedMonitor struct {
	Tests   cachedTests             `json:"tests"`
	Results map[string]cachedResult `json:"results"`
}

type cachedTests struct {
	URLs           []string             `json:"urls,omitempty"`
	Probe          string               `json:"probe"`
	ExpectedStatus []option.StatusRange `json:"expected_status,omitempty"`
	UnifiedDelay   bool                 `json:"unified_delay,omitempty"`
}

type cachedResult struct {
	Delay uint16 `json:"delay"`
	// Tested is when, in Unix milliseconds.
	Tested int64 `json:"tested"`
}

func cachedTestsOf(settings option.MonitoringSettings) cachedTests {
	tests := cachedTests{Probe: settings.Probe}
	if settings.Probe == option.ProbeURL {
		tests.URLs, tests.ExpectedStatus, tests.UnifiedDelay = settings.URLs, settings.ExpectedStatus, settings.UnifiedDelay
	}
	return tests
}

func (t cachedTests) key() string {
	content, _ := json.Marshal(t)
	return string(content)
}

// load reads what an earlier run wrote. What cannot be used is left out, with one warning (S2.8).
func (s *Service) load() {
	s.cache.file = service.FromContext[box.CacheFile](s.ctx)
	if s.cache.file == nil {
		return
	}
	saved := s.cache.file.LoadRuleSet(cacheTag)
	if saved == nil {
		return
	}
	results, damaged := readCache(saved.Content, time.Now())
	if damaged != nil {
		s.logger.Warn("cached results: ", damaged, ", left out")
	}
	for _, monitor := range s.all() {
		monitor.remember(results[cachedTestsOf(monitor.settings).key()])
	}
}

// readCache returns the results that are usable now, by the tests that they were got with. The error tells of damage.
func readCache(content []byte, now time.Time) (results map[string]map[string]success, damaged error) {
	var read cachedResults
	if err := json.Unmarshal(content, &read); err != nil {
		return nil, E.Cause(err, "not readable")
	}
	if read.Version != cacheVersion {
		return nil, E.New("version ", read.Version, " is not known")
	}
	results = make(map[string]map[string]success)
	broken := 0
	for _, monitor := range read.Monitors {
		usable := make(map[string]success)
		for tag, it := range monitor.Results {
			at := time.UnixMilli(it.Tested)
			switch age := now.Sub(at); {
			case it.Delay == 0 || it.Delay > maxDelay || age < 0:
				broken++
			case age <= cachedFor:
				usable[tag] = success{it.Delay, at}
			}
		}
		results[monitor.Tests.key()] = usable
	}
	if broken > 0 {
		damaged = E.New(broken, " make no sense")
	}
	return results, damaged
}

// maxDelay is the largest delay of a result (S3.2).
const maxDelay = math.MaxUint16 - 1

// remember makes results of an earlier run known; nothing has begun.
func (m *Monitor) remember(results map[string]success) {
	m.access.Lock()
	defer m.access.Unlock()
	for tag, it := range results {
		m.latest[tag] = it
		for _, judge := range m.judges {
			judge.records[tag] = record{result: adapter.Result{
				State: adapter.StateCached, Delay: it.delay, Tested: it.at, Since: it.at,
			}}
		}
	}
}

// save writes all successful results in one transaction (S2.8).
func (s *Service) save() {
	s.cache.access.Lock()
	defer s.cache.access.Unlock()
	if s.cache.file == nil {
		return
	}
	written := cachedResults{Version: cacheVersion}
	for _, monitor := range s.all() {
		written.Monitors = append(written.Monitors, cachedMonitor{cachedTestsOf(monitor.settings), monitor.successes()})
	}
	content, err := json.Marshal(written)
	if err == nil {
		err = s.cache.file.SaveRuleSet(cacheTag, &box.SavedBinary{Content: content, LastUpdated: time.Now()})
	}
	if err != nil {
		s.logger.Error("save results: ", err)
	}
}

// closeCache writes for the last time. A box that never started knows nothing new.
func (s *Service) closeCache() {
	s.save()
	s.cache.access.Lock()
	defer s.cache.access.Unlock()
	s.cache.file = nil
}

// successes are the last tests that succeeded, of outbounds that are tested still.
func (m *Monitor) successes() map[string]cachedResult {
	m.access.Lock()
	defer m.access.Unlock()
	results := make(map[string]cachedResult, len(m.latest))
	for _, tag := range m.reached() {
		if it, succeeded := m.latest[tag]; succeeded {
			results[tag] = cachedResult{it.delay, it.at.UnixMilli()}
		}
	}
	return results
}
