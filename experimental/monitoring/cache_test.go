package monitoring

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tarazu/adapter"
	"tarazu/option"

	box "github.com/sagernet/sing-box/adapter"
	"github.com/sagernet/sing/service"
)

// states are what a group knows of a, b, c and tunnel before any test of this run.
func (l *laboratory) states() (states []string) {
	for _, tag := range []string{"a", "b", "c", "tunnel"} {
		states = append(states, l.handle.Result(tag).State.String())
	}
	return states
}

func TestCache_S2_8_ResultsSurviveWithTheirAge(t *testing.T) {
	path := cachePath(t)
	var tested time.Time
	labour(t, quietly(), path, func(t *testing.T, l *laboratory) {
		l.network.set("b", time.Millisecond, errRefused)
		l.network.set("c", 5*time.Millisecond, nil)
		l.start()
		pass(time.Second)
		tested = l.handle.Result("c").Tested
	})
	labour(t, quietly(), path, func(t *testing.T, l *laboratory) {
		expect(t, l.states(), "cached", "untested", "cached", "cached")
		result := l.handle.Result("c")
		if result.Delay != 5 || !result.Tested.Equal(tested.Truncate(time.Millisecond)) {
			t.Fatal(result)
		}
		if l.published("c") != 0 { // S2.9
			t.Fatal("a cached result is shown as a delay")
		}
		l.start()
		pass(30 * time.Millisecond)
		expect(t, l.network.tests(), "c", "a") // S2.6: fastest first
		pass(time.Second)
		expect(t, l.network.tests(), "tunnel", "b")
		expect(t, l.states(), "up", "up", "up", "up")
	})
}

// What was not tested in this run is written again as it was: its age counts on, up to 24 h.
func TestCache_S2_8_TwentyFourHours(t *testing.T) {
	path := cachePath(t)
	var tested time.Time
	labour(t, quietly(), path, func(t *testing.T, l *laboratory) {
		l.start()
		pass(time.Second)
		tested = l.handle.Result("a").Tested
	})
	labour(t, quietly(), path, func(t *testing.T, l *laboratory) {}) // starts and ends without a test
	labour(t, quietly(), path, func(t *testing.T, l *laboratory) {
		if result := l.handle.Result("a"); !result.Tested.Equal(tested.Truncate(time.Millisecond)) {
			t.Fatal(result)
		}
		content := l.service.cache.file.LoadRuleSet(cacheTag).Content
		for age, usable := range map[time.Duration]bool{24 * time.Hour: true, 24*time.Hour + time.Second: false} {
			results, err := readCache(content, tested.Add(age))
			if err != nil {
				t.Fatal(err)
			}
			if _, found := results[cachedTestsOf(l.handle.settings).key()]["a"]; found != usable {
				t.Fatal(age, ": usable: ", found)
			}
		}
	})
}

// Killed at any moment, a run leaves its last complete round.
func TestCache_S2_8_KilledLosesTheRoundInProgress(t *testing.T) {
	path := cachePath(t)
	copied := filepath.Join(t.TempDir(), "cache.db")
	labour(t, quietly(), path, func(t *testing.T, l *laboratory) {
		l.start()
		pass(time.Second) // the first round
		l.network.set("a", 99*time.Millisecond, nil)
		pass(time.Hour - time.Second + 200*time.Millisecond) // in the middle of the second
		if l.handle.Result("a").Delay != 99 {
			t.Fatal("a was not tested again")
		}
		content, err := os.ReadFile(path) // as a killed run leaves it
		l.must(err)
		l.must(os.WriteFile(copied, content, 0o600))
		l.network.set("c", time.Hour, nil)
	})
	labour(t, quietly(), copied, func(t *testing.T, l *laboratory) {
		if result := l.handle.Result("a"); result.State != adapter.StateCached || result.Delay != 10 && result.Delay != 99 {
			t.Fatal(result)
		}
	})
}

func TestCache_S2_8_OneTransactionARound(t *testing.T) {
	labour(t, quietly(), cachePath(t), func(t *testing.T, l *laboratory) {
		counted := &countingFile{CacheFile: l.service.cache.file}
		l.service.cache.file = counted
		l.start()
		pass(3*time.Hour + time.Second)
		if counted.written != 4 {
			t.Fatal(counted.written, " transactions in 4 rounds")
		}
		l.must(l.service.Close())
		l.must(l.service.Close())
		if counted.written != 5 {
			t.Fatal(counted.written, " transactions, not one more at shutdown")
		}
	})
}

type countingFile struct {
	box.CacheFile
	written int
}

func (f *countingFile) SaveRuleSet(tag string, set *box.SavedBinary) error {
	f.written++
	return f.CacheFile.SaveRuleSet(tag, set)
}

func TestCache_S2_8_OtherTestsIgnoreOldResults(t *testing.T) {
	for _, it := range []struct {
		name   string
		change func(options *option.MonitoringServiceOptions)
		state  string
	}{
		{"nothing", func(*option.MonitoringServiceOptions) {}, "cached"},
		{"another interval", func(o *option.MonitoringServiceOptions) { o.Monitoring.Interval = duration(time.Minute) }, "cached"},
		{"another URL", func(o *option.MonitoringServiceOptions) { o.Monitoring.URLs = []string{"http://127.0.0.1/"} }, "untested"},
		{"an expected status", func(o *option.MonitoringServiceOptions) { o.Monitoring.ExpectedStatus = []string{"204"} }, "untested"},
		{"another probe", func(o *option.MonitoringServiceOptions) { o.Monitoring.Probe = option.ProbeTCP }, "untested"},
		{"unified delay", func(o *option.MonitoringServiceOptions) { o.UnifiedDelay = true }, "untested"},
	} {
		t.Run(it.name, func(t *testing.T) {
			path := cachePath(t)
			labour(t, quietly(), path, func(t *testing.T, l *laboratory) {
				l.start()
				pass(time.Second)
			})
			options := quietly()
			it.change(&options)
			labour(t, options, path, func(t *testing.T, l *laboratory) {
				expect(t, l.states()[:1], it.state)
			})
		})
	}
}

func TestCache_S2_8_DamageIsIgnoredWithOneWarning(t *testing.T) {
	for _, it := range []struct{ content, warning string }{
		{`{"version":1,"monitors":[]}`, ""},
		{``, "not readable"},
		{"\x00\xff\xfe", "not readable"},
		{`{"version":1,"monitors":[{"results":{"a":{"delay":"x"}}}]}`, "not readable"},
		{`{"version":2}`, "version 2 is not known"},
		{`[]`, "not readable"},
		{`{"version":1,"monitors":[{"tests":{"probe":"url","urls":["https://www.gstatic.com/generate_204"]},"results":` +
			`{"a":{"delay":0,"tested":946684800000},"b":{"delay":65535,"tested":946684800000},"c":{"delay":7,"tested":4102444800000},"tunnel":{"delay":7,"tested":946684800000}}}]}`,
			"3 make no sense"},
	} {
		labour(t, quietly(), cachePath(t), func(t *testing.T, l *laboratory) {
			file := service.FromContext[box.CacheFile](l.ctx)
			l.must(file.SaveRuleSet(cacheTag, &box.SavedBinary{Content: []byte(it.content)}))
			log := new(warnings)
			l.service.logger = log
			l.service.load()
			if it.warning == "" {
				expect(t, log.lines)
			} else if len(log.lines) != 1 || !strings.Contains(log.lines[0], it.warning) {
				t.Fatalf("%q: %q", it.content, log.lines)
			}
			if usable := l.states()[3] == "cached"; usable != strings.Contains(it.content, "tunnel") {
				t.Fatalf("%q: %v", it.content, l.states())
			}
			expect(t, l.states()[:3], "untested", "untested", "untested")
		})
	}
}

func TestCache_S1_5_WithoutACacheFileNothingIsStored(t *testing.T) {
	labour(t, quietly(), "", func(t *testing.T, l *laboratory) {
		l.start()
		pass(time.Second)
		expect(t, l.states(), "up", "up", "up", "up")
	})
}

// Nothing is written to a file that is closed, however long a test hangs.
func TestCache_S2_7_NoWriteAfterClose(t *testing.T) {
	labour(t, quietly(), cachePath(t), func(t *testing.T, l *laboratory) {
		hang := make(chan struct{})
		l.network.hangs["b"] = hang
		counted := &countingFile{CacheFile: l.service.cache.file}
		l.service.cache.file = counted
		l.start()
		pass(time.Second)
		l.must(l.service.Close())
		written := counted.written
		close(hang)
		pass(time.Hour)
		l.handle.DialFailed("a")
		l.handle.Test(context.Background(), "group")
		pass(time.Hour)
		if counted.written != written {
			t.Fatal("written after the end")
		}
	})
}
