package harness

import "time"

// Eventually waits until a condition holds that nobody announces, and fails if it does not in time.
func Eventually(owner Owner, within time.Duration, what string, condition func() bool) {
	owner.Helper()
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for !condition() {
		select {
		case <-ticker.C:
		case <-deadline.C:
			owner.Fatalf("not within %v: %s", within, what)
			return
		}
	}
}
