//go:build linux

package harness

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
)

// Usage is what a program has in use.
type Usage struct {
	Descriptors, Goroutines int
	// Heap in bytes, after a collection.
	Heap int
}

var (
	goroutineCount = regexp.MustCompile(`goroutine profile: total (\d+)`)
	heapSize       = regexp.MustCompile(`# HeapAlloc = (\d+)`)
)

// Usage asks a program for what it has in use, which listens for that: `experimental.debug.listen`.
func (p *Process) Usage(debug string) (usage Usage) {
	p.owner.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.command.Process.Pid))
	if err != nil {
		p.owner.Fatalf("count descriptors: %v", err)
	}
	usage.Descriptors = len(entries)
	read := func(path string, expression *regexp.Regexp) int {
		response, err := http.Get("http://" + debug + "/debug/pprof/" + path)
		if err != nil {
			p.owner.Fatalf("ask for %s: %v", path, err)
		}
		defer response.Body.Close()
		content, _ := io.ReadAll(response.Body)
		found := expression.FindSubmatch(content)
		if found == nil {
			p.owner.Fatalf("%s says %.200s", path, content)
		}
		number, _ := strconv.Atoi(string(found[1]))
		return number
	}
	usage.Goroutines = read("goroutine?debug=1", goroutineCount)
	usage.Heap = read("heap?debug=1&gc=1", heapSize)
	return usage
}
