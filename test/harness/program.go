package harness

import (
	"fmt"
	"os"
	"slices"
	"sync"
)

// Program owns a laboratory outside of tests, for a demonstration. Its zero value is ready; Close ends everything.
type Program struct {
	access sync.Mutex
	ends   []func()
}

var _ Owner = (*Program)(nil)

// Helper does nothing: a program reports no line of a test.
func (p *Program) Helper() {}

// Errorf reports what went wrong.
func (p *Program) Errorf(format string, arguments ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", arguments...)
}

// Fatalf reports what went wrong and ends the program.
func (p *Program) Fatalf(format string, arguments ...any) {
	p.Errorf(format, arguments...)
	p.Close()
	os.Exit(1)
}

// Cleanup has a function called by Close, the last one first.
func (p *Program) Cleanup(end func()) {
	p.access.Lock()
	defer p.access.Unlock()
	p.ends = append(p.ends, end)
}

// Close ends what was started.
func (p *Program) Close() {
	p.access.Lock()
	ends := p.ends
	p.ends = nil
	p.access.Unlock()
	for _, end := range slices.Backward(ends) {
		end()
	}
}
