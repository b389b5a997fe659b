package monitoring

import (
	"context"
	"errors"
	"math"
	"net/url"
	"strings"
	"time"

	"tarazu/adapter"

	F "github.com/sagernet/sing/common/format"
)

// record is what a judge knows of one outbound. Its methods are pure: they return what it becomes.
type record struct {
	result adapter.Result
	// successes and failures count in a row, for `rise` and `fall`.
	successes, failures int
}

// outcome is how one test ended.
type outcome struct {
	// delay in milliseconds, at least 1, where reason is empty.
	delay uint16
	// reason of a failure, one line.
	reason string
}

// outcomeOf tells how a test ended that took this long. A delay is at least 1 ms and does not wrap.
func outcomeOf(elapsed time.Duration, err error, timeout time.Duration) outcome {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return outcome{reason: noAnswer(timeout)}
	case err != nil:
		return outcome{reason: reasonOf(err)}
	}
	return outcome{delay: uint16(min(max(elapsed.Milliseconds(), 1), math.MaxUint16-1))}
}

func noAnswer(timeout time.Duration) string {
	return F.ToString("no answer within ", timeout)
}

// reasonOf is an error in one line, without the address that was asked for.
func reasonOf(err error) string {
	var request *url.Error
	if errors.As(err, &request) {
		err = request.Err
	}
	return strings.Join(strings.Fields(err.Error()), " ")
}

// tested applies the outcome of one test (S2.4): the first of this run decides alone, then a member goes down after
// `fall` failures in a row and comes back after `rise` successes in a row.
func (r record) tested(outcome outcome, rise, fall int, now time.Time) record {
	failed := outcome.reason != ""
	state := r.result.State
	if failed {
		r.failures, r.successes = r.failures+1, 0
	} else {
		r.successes, r.failures = r.successes+1, 0
	}
	switch {
	case state != adapter.StateUp && state != adapter.StateDown, // the first test of this run
		state == adapter.StateUp && r.failures >= fall,
		state == adapter.StateDown && r.successes >= rise:
		state = adapter.StateUp
		if failed {
			state = adapter.StateDown
		}
	}
	if state != r.result.State {
		r.result.State, r.result.Since = state, now
	}
	r.result.Tested, r.result.Reason = now, outcome.reason
	if !failed {
		r.result.Delay = outcome.delay
	}
	return r
}

// retests says when a failed dial may start a test (S5.3).
type retests struct {
	// pause after the next successful one; zero is shortestPause.
	pause     time.Duration
	notBefore time.Time
	lastDial  time.Time
}

const (
	shortestPause = time.Second
	longestPause  = 30 * time.Second
	quiet         = time.Minute
)

// dialFailed reports whether a dial that failed now may start a test.
func (r retests) dialFailed(now time.Time) (retests, bool) {
	if now.Sub(r.lastDial) >= quiet {
		r.pause = 0
	}
	r.lastDial = now
	return r, !now.Before(r.notBefore)
}

// ended takes in how the test ended. A success says that the destination was at fault, so the pause doubles; after a
// failure the next may follow after the shortest pause.
func (r retests) ended(failed bool, now time.Time) retests {
	pause := shortestPause
	if failed {
		r.pause = 0
	} else {
		pause = max(r.pause, shortestPause)
		r.pause = min(2*pause, longestPause)
	}
	r.notBefore = now.Add(pause)
	return r
}
