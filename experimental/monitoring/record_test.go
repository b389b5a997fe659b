package monitoring

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"tarazu/adapter"
)

// FIELD case 50 among them.
func TestRecord_S2_4_RiseAndFall(t *testing.T) {
	for _, it := range []struct {
		name       string
		rise, fall int
		// tests and the states after each: P passed, F failed; U up, D down.
		tests, states string
	}{
		{"the last test decides", 1, 1, "PFPFF", "UDUDD"},
		{"the first test of this run decides alone", 3, 3, "P", "U"},
		{"the first failure too", 3, 3, "F", "D"},
		{"rise 3 returns at the last", 3, 1, "FFPFPPFPPP", "DDDDDDDDDU"},
		{"fall 3 with single failures never falls", 1, 3, "PFPFFPFFPF", "UUUUUUUUUU"},
		{"fall 3 falls at the third", 1, 3, "PFFF", "UUUD"},
	} {
		t.Run(it.name, func(t *testing.T) {
			var r record
			now := time.Unix(1000, 0)
			var states strings.Builder
			for _, test := range it.tests {
				now = now.Add(time.Minute)
				result := outcome{delay: 40}
				if test == 'F' {
					result = outcome{reason: "refused"}
				}
				before := r.result
				r = r.tested(result, it.rise, it.fall, now)
				states.WriteString(map[adapter.State]string{adapter.StateUp: "U", adapter.StateDown: "D"}[r.result.State])
				if changed := r.result.State != before.State; changed != r.result.Since.Equal(now) {
					t.Fatal("since: ", r.result.Since)
				}
			}
			if states.String() != it.states {
				t.Fatalf("%s leads to %s, not to %s", it.tests, states.String(), it.states)
			}
		})
	}
}

func TestRecord_S2_4_LastSuccessCountsUntilItFalls(t *testing.T) {
	r := record{}.tested(outcome{delay: 40}, 1, 2, time.Now())
	r = r.tested(outcome{reason: "refused"}, 1, 2, time.Now())
	if r.result.State != adapter.StateUp || r.result.Delay != 40 || r.result.Reason != "refused" {
		t.Fatal(r.result)
	}
}

func TestRecord_CachedGivesWayToTheFirstTest(t *testing.T) {
	cached := record{result: adapter.Result{State: adapter.StateCached, Delay: 30}}
	if r := cached.tested(outcome{reason: "refused"}, 1, 3, time.Now()); r.result.State != adapter.StateDown {
		t.Fatal(r.result)
	}
}

func TestOutcome(t *testing.T) {
	for _, it := range []struct {
		elapsed time.Duration
		err     error
		delay   uint16
		reason  string
	}{
		{elapsed: 10 * time.Microsecond, delay: 1},
		{elapsed: 1999 * time.Microsecond, delay: 1},
		{elapsed: 42 * time.Millisecond, delay: 42},
		{elapsed: 66 * time.Second, delay: 65534}, // it does not wrap
		{err: context.DeadlineExceeded, reason: "no answer within 5s"},
		{err: &url.Error{Op: "Head", URL: "https://secret.example/", Err: errors.New("EOF")}, reason: "EOF"},
		{err: errors.New("first\nsecond\tthird"), reason: "first second third"},
	} {
		found := outcomeOf(it.elapsed, it.err, 5*time.Second)
		if found != (outcome{it.delay, it.reason}) {
			t.Errorf("%v, %v: %+v", it.elapsed, it.err, found)
		}
	}
}
