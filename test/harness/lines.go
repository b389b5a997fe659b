package harness

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"time"
)

// Lines collects what a process writes and lets others wait for a line. It is an io.Writer.
type Lines struct {
	access  sync.Mutex
	lines   []string
	partial []byte
	// changed is closed, and replaced, when something arrives; waiting is by it, not by looking again and again.
	changed chan struct{}
	ended   bool
}

// NewLines returns an empty collection.
func NewLines() *Lines {
	return &Lines{changed: make(chan struct{})}
}

// Write takes output in pieces of any length.
func (l *Lines) Write(content []byte) (int, error) {
	l.access.Lock()
	defer l.access.Unlock()
	l.partial = append(l.partial, content...)
	for {
		line, rest, complete := bytes.Cut(l.partial, []byte("\n"))
		if !complete {
			break
		}
		l.lines = append(l.lines, string(line))
		l.partial = rest
	}
	l.tell()
	return len(content), nil
}

// End says that nothing more comes, so that nobody waits in vain.
func (l *Lines) End() {
	l.access.Lock()
	defer l.access.Unlock()
	if len(l.partial) > 0 {
		l.lines = append(l.lines, string(l.partial))
		l.partial = nil
	}
	l.ended = true
	l.tell()
}

func (l *Lines) tell() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// Mark is the place after the last line so far, for Await and Find.
func (l *Lines) Mark() int {
	l.access.Lock()
	defer l.access.Unlock()
	return len(l.lines)
}

// Find returns the lines after a mark that contain all of some texts.
func (l *Lines) Find(mark int, texts ...string) []string {
	l.access.Lock()
	defer l.access.Unlock()
	return l.find(mark, texts)
}

func (l *Lines) find(mark int, texts []string) (found []string) {
	for _, line := range l.lines[mark:] {
		if containsAll(line, texts) {
			found = append(found, line)
		}
	}
	return found
}

// Await returns the first line after a mark that contains all of some texts, as soon as it is there.
func (l *Lines) Await(mark int, within time.Duration, texts ...string) (string, error) {
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	for {
		l.access.Lock()
		found, changed, ended := l.find(mark, texts), l.changed, l.ended
		l.access.Unlock()
		switch {
		case len(found) > 0:
			return found[0], nil
		case ended:
			return "", fmt.Errorf("the process ended without a line with %q", texts)
		}
		select {
		case <-changed:
		case <-deadline.C:
			return "", fmt.Errorf("no line with %q within %v", texts, within)
		}
	}
}

func containsAll(line string, texts []string) bool {
	for _, text := range texts {
		if !strings.Contains(line, text) {
			return false
		}
	}
	return true
}
