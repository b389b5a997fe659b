package test

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"tarazu/test/harness"
)

// cached gives a configuration a cache file, which is in the program's directory unless path says otherwise.
func cached(configuration object, path string) object {
	configuration["experimental"].(object)["cache_file"] = object{"enabled": true, "path": path}
	return configuration
}

// Killed at any moment, the next start works and knows the last complete round: before any test of its own has ended, it
// chooses the member that was fastest (S2.8, S3.4).
func TestMonitor_S2_8_Killed(t *testing.T) {
	t.Parallel()
	target := harness.StartTarget(t)
	_, members, tags, sources := startMembers(t, 4)
	for _, source := range sources[:3] {
		target.DelayTests(source, 150*time.Millisecond)
	}
	port := harness.FreePort(t)
	process := harness.StartReady(t, cached(harness.Monitored(
		harness.Configuration(port, object{"strategy": "lowest-delay"}, members...),
		harness.Monitoring(target, object{"interval": "200ms"}),
	), "cache.db"))
	awaitUp(process, 0, tags...)
	target.AwaitRounds(t, 2, sources...)
	client := harness.NewClient(port)
	for run := range 8 {
		// Amid a round, at a moment of its own each time.
		before := target.Tests()[sources[run%4]]
		harness.Eventually(t, soon, "a test", func() bool { return target.Tests()[sources[run%4]] > before })
		process.Kill()
		if run == 7 {
			// In the last run no test ends.
			for _, source := range sources {
				target.DelayTests(source, time.Minute)
			}
		}
		process.Again()
		process.AwaitReady()
		expectShares(t, "after a kill", client.Shares(t, target.URL, 3), equally(3, sources[3]))
	}
	if lines := process.Log.Find(0, "is now"); len(lines) > 0 {
		t.Errorf("a test ended: %v", lines)
	}
}

// What the cache says of a member that has died meanwhile, or is gone from the configuration, holds nothing up.
func TestField4_CachedSelectionIsDeadOrGone(t *testing.T) {
	t.Parallel()
	for _, gone := range []bool{false, true} {
		t.Run(map[bool]string{false: "dead", true: "gone"}[gone], func(t *testing.T) {
			t.Parallel()
			target := harness.StartTarget(t)
			servers, members, tags, sources := startMembers(t, 3)
			target.DelayTests(sources[1], 100*time.Millisecond)
			target.DelayTests(sources[2], 200*time.Millisecond)
			port := harness.FreePort(t)
			with := func(members ...object) object {
				return cached(harness.Monitored(
					harness.Configuration(port, object{"strategy": "lowest-delay"}, members...), harness.Monitoring(target, nil),
				), "cache.db")
			}
			process := harness.StartReady(t, with(members...))
			awaitUp(process, 0, tags...)
			process.Stop()
			if gone {
				process.Rewrite(with(members[1:]...))
			} else {
				servers[0].Become(harness.Refuse)
			}
			process.Again()
			process.AwaitReady()
			awaitUp(process, 0, tags[1])
			expectShares(t, "after the restart", harness.NewClient(port).Shares(t, target.URL, 5), equally(5, sources[1]))
		})
	}
}

// A cache file that is no cache file, or is another program's at the moment, is treated as sing-box does.
func TestMonitor_S2_8_CacheFile(t *testing.T) {
	t.Parallel()
	target := harness.StartTarget(t)
	one := harness.StartFaulty(t, 2)
	path := filepath.Join(t.TempDir(), "cache.db")
	if err := harness.WriteFile(path, "this is no database"); err != nil {
		t.Fatal(err)
	}
	with := func() object {
		return cached(harness.Monitored(
			harness.Configuration(harness.FreePort(t), nil, one.Outbound("one")), harness.Monitoring(target, nil),
		), path)
	}
	process := harness.StartReady(t, with())
	awaitUp(process, 0, "one")
	second := harness.Start(t, with())
	second.Await(0, "FATAL", "cache-file", "timeout")
	if second.Status() == 0 {
		t.Error("two programs share a cache file")
	}
	target.AwaitRounds(t, 2, one.Address)
	process.Stop()
	third := harness.StartReady(t, with())
	awaitUp(third, 0, "one")
}

// `cache_id` keeps two configurations apart that share a file, one after the other (S2.8).
func TestMonitor_S2_8_CacheID(t *testing.T) {
	t.Parallel()
	target := harness.StartTarget(t)
	_, members, tags, sources := startMembers(t, 2)
	target.DelayTests(sources[0], 100*time.Millisecond)
	port := harness.FreePort(t)
	with := func(id string) object {
		configuration := cached(harness.Monitored(
			harness.Configuration(port, object{"strategy": "lowest-delay"}, members...), harness.Monitoring(target, nil),
		), "cache.db")
		configuration["experimental"].(object)["cache_file"].(object)["cache_id"] = id
		return configuration
	}
	process := harness.StartReady(t, with("left"))
	awaitUp(process, 0, tags...)
	process.Stop()
	for _, source := range sources {
		target.DelayTests(source, time.Minute) // from now on only the cache knows
	}
	// Without a result the first member is selected (S3.4), with one the fastest.
	for id, expected := range map[string]string{"right": sources[0], "left": sources[1]} {
		process.Rewrite(with(id))
		process.Again()
		process.AwaitReady()
		expectShares(t, id, harness.NewClient(port).Shares(t, target.URL, 3), equally(3, expected))
		process.Kill()
	}
}

// 100 tests hang in a member that accepts and says nothing: the program ends within a second, at any stage of its start
// (S2.7).
func TestMonitor_S2_7_StopAtAnyStage(t *testing.T) {
	t.Parallel()
	target := harness.StartTarget(t)
	tarpits, members, _, _ := startMembers(t, 100)
	for _, tarpit := range tarpits {
		tarpit.Become(harness.Tarpit)
	}
	process := harness.Start(t, cached(harness.Monitored(
		harness.Configuration(harness.FreePort(t), nil, members...),
		harness.Monitoring(target, object{"interval": "1h", "url_test_timeout": "1m", "workers": 100}),
	), "cache.db"))
	for _, stage := range []struct {
		name string
		wait func()
	}{
		{"listening", func() { process.Await(0, "tcp server started") }},
		{"started", process.AwaitReady},
		{"first tests", func() {
			harness.Eventually(t, soon, "a test", func() bool { return tarpits[0].Open() > 0 })
		}},
		{"all tests", func() {
			harness.Eventually(t, soon, "100 tests", func() bool {
				open := 0
				for _, tarpit := range tarpits {
					open += tarpit.Open()
				}
				return open == 100
			})
		}},
		{"all tests, asked twice", func() {
			harness.Eventually(t, soon, "a test", func() bool { return tarpits[99].Open() > 0 })
			process.Signal(syscall.SIGTERM)
		}},
	} {
		stage.wait()
		if process.Running() {
			// A second is the rule; a busy machine is given as much again.
			if took := process.Stop(); took > 2*time.Second {
				t.Errorf("%s: the program took %v to end", stage.name, took)
			}
		}
		if status := process.Status(); status != 0 && stage.name != "all tests, asked twice" {
			t.Errorf("%s: exit status %d", stage.name, status)
		}
		process.Again()
	}
}
