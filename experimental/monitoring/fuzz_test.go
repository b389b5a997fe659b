package monitoring

import (
	"testing"
	"time"
)

// FuzzCache: what the cache file holds, whatever it is, gives results that make sense, or none.
func FuzzCache(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `[]`, `null`, `{"version":1}`, `{"version":1,"monitors":[{}]}`, `{"version":1,"monitors":[{"results":null}]}`,
		`{"version":1,"monitors":[{"tests":{"probe":"url","urls":["http://x/"]},"results":{"a":{"delay":7,"tested":946684800000}}}]}`,
		`{"version":1,"monitors":[{"results":{"a":{"delay":0,"tested":0},"b":{"delay":65535,"tested":9223372036854775807},"c":{"tested":-9223372036854775808}}}]}`,
	} {
		f.Add([]byte(seed))
	}
	now := time.Date(2000, 1, 1, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, content []byte) {
		results, damaged := readCache(content, now)
		if results == nil && damaged == nil {
			t.Error("nothing read, and nothing said")
		}
		for tests, known := range results {
			for tag, it := range known {
				if age := now.Sub(it.at); it.delay == 0 || it.delay > maxDelay || age < 0 || age > cachedFor {
					t.Errorf("%s: %q: %v", tests, tag, it)
				}
			}
		}
	})
}
