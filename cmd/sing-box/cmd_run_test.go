package main

import (
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// A stop that hangs is ended by a further signal to stop, not by one to reload, and after 10 s at the latest.
func TestAwait(t *testing.T) {
	for name, it := range map[string]struct {
		signals []os.Signal
		closes  time.Duration // 0 is never
		err     error
		after   time.Duration
	}{
		"it closes":          {closes: 3 * time.Second, after: 3 * time.Second},
		"it hangs":           {err: errHangs, after: 10 * time.Second},
		"a second interrupt": {signals: []os.Signal{os.Interrupt}, err: errHangs, after: time.Second},
		"a second SIGTERM":   {signals: []os.Signal{syscall.SIGHUP, syscall.SIGTERM}, err: errHangs, after: time.Second},
		"SIGHUP":             {signals: []os.Signal{syscall.SIGHUP}, closes: 4 * time.Second, after: 4 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				signals, ended := make(chan os.Signal, 4), make(chan error, 1)
				go func() {
					<-time.After(time.Second)
					for _, signal := range it.signals {
						signals <- signal
					}
				}()
				if it.closes > 0 {
					time.AfterFunc(it.closes, func() { ended <- nil })
				}
				if err := await(ended, signals); err != it.err {
					t.Errorf("%v, not %v", err, it.err)
				}
				if after := time.Since(start); after != it.after {
					t.Errorf("after %v, not %v", after, it.after)
				}
			})
		})
	}
}
