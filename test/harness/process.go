package harness

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// patience is the deadline of what takes milliseconds on an idle machine.
const patience = 10 * time.Second

// Process is the program, running with a configuration in a directory of its own.
type Process struct {
	// Log is what the program wrote to stderr since it was started last.
	Log *Lines

	owner     Owner
	quiet     bool // its log interests nobody as long as it does not crash
	directory string
	input     string
	flags     []string
	command   *exec.Cmd
	ended     chan struct{}
}

// Start runs the program with a configuration: anything that encodes to JSON, or its text as a string. It does not wait
// until the program is ready.
func Start(owner Owner, configuration any) *Process {
	owner.Helper()
	return StartWith(owner, map[string]any{configurationFile: configuration}, "", "-c", configurationFile)
}

// StartWith runs the program with files in its directory, with input, and with flags that say what of it to read.
func StartWith(owner Owner, files map[string]any, input string, flags ...string) *Process {
	owner.Helper()
	directory, err := os.MkdirTemp("", "tarazu-process-")
	if err != nil {
		owner.Fatalf("make a directory: %v", err)
	}
	p := &Process{owner: owner, directory: directory, input: input, flags: flags}
	owner.Cleanup(func() {
		p.Kill()
		p.report()
		_ = os.RemoveAll(directory)
	})
	for name, content := range files {
		p.write(name, content)
	}
	p.Again()
	return p
}

// StartReady is Start, and waits until the program says that it has started.
func StartReady(owner Owner, configuration any) *Process {
	owner.Helper()
	p := Start(owner, configuration)
	p.AwaitReady()
	return p
}

// Rewrite replaces the configuration file; the running program does not look at it before a reload.
func (p *Process) Rewrite(configuration any) {
	p.owner.Helper()
	p.write(configurationFile, configuration)
}

func (p *Process) write(name string, configuration any) {
	p.owner.Helper()
	if err := WriteFile(filepath.Join(p.directory, name), configuration); err != nil {
		p.owner.Fatalf("write a configuration: %v", err)
	}
}

// WriteFile writes a configuration to a file, and makes its directory.
func WriteFile(path string, configuration any) error {
	content, err := Encode(configuration)
	if err != nil {
		return err
	}
	if err = os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o600)
}

const configurationFile = "config.json"

// Encode returns a configuration as it stands in a file.
func Encode(configuration any) ([]byte, error) {
	if text, isText := configuration.(string); isText {
		return []byte(text), nil
	}
	return json.MarshalIndent(configuration, "", "  ")
}

// Again runs the program once more, in the same directory, after it has ended.
func (p *Process) Again() {
	p.owner.Helper()
	p.Log = NewLines()
	p.command = exec.Command(Binary(p.owner), append([]string{"run", "--disable-color", "-D", p.directory}, p.flags...)...)
	p.command.Stdin = strings.NewReader(p.input)
	p.command.Stderr = p.Log
	p.command.WaitDelay = time.Second
	if err := p.command.Start(); err != nil {
		p.owner.Fatalf("start the program: %v", err)
	}
	ended := make(chan struct{})
	p.ended = ended
	go func(command *exec.Cmd, log *Lines) {
		_ = command.Wait()
		log.End()
		close(ended)
	}(p.command, p.Log)
}

// AwaitReady waits until the program says that it has started.
func (p *Process) AwaitReady() {
	p.owner.Helper()
	p.Await(0, "sing-box started")
}

// Await returns the first line of the log after a mark that contains all of some texts.
func (p *Process) Await(mark int, texts ...string) string {
	p.owner.Helper()
	line, err := p.Log.Await(mark, patience, texts...)
	if err != nil {
		p.owner.Fatalf("%v", err)
	}
	return line
}

// Signal sends a signal.
func (p *Process) Signal(signal os.Signal) {
	p.owner.Helper()
	if err := p.command.Process.Signal(signal); err != nil {
		p.owner.Fatalf("signal %v: %v", signal, err)
	}
}

// Stop asks the program to end and returns how long that took.
func (p *Process) Stop() time.Duration {
	p.owner.Helper()
	asked := time.Now()
	p.Signal(syscall.SIGTERM)
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	select {
	case <-p.ended:
	case <-deadline.C:
		p.owner.Fatalf("the program did not end within %v of SIGTERM", patience)
	}
	return time.Since(asked)
}

// Kill ends the program without asking. It may have ended before.
func (p *Process) Kill() {
	if p.command == nil {
		return
	}
	if err := p.command.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.owner.Errorf("kill the program: %v", err)
		return
	}
	<-p.ended
}

// Copied is how many bytes the program itself has read and written, by the kernel's count; what the kernel copies for it
// from one connection to another is not among them.
func (p *Process) Copied() (count int64) {
	p.owner.Helper()
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", p.command.Process.Pid))
	if err != nil {
		p.owner.Fatalf("read what the program copied: %v", err)
	}
	for line := range strings.Lines(string(content)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if name == "rchar" || name == "wchar" {
			number, _ := strconv.ParseInt(value, 10, 64)
			count += number
		}
	}
	return count
}

// Running reports whether the program has not ended.
func (p *Process) Running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// Status is the exit status of a program that has ended.
func (p *Process) Status() int {
	<-p.ended
	return p.command.ProcessState.ExitCode()
}

// report fails the owner if the program crashed, whatever else it did right, and shows the log of one that failed.
func (p *Process) report() {
	if p.Log == nil {
		return
	}
	for _, word := range []string{"panic", "fatal error", "DATA RACE"} {
		if found := p.Log.Find(0, word); len(found) > 0 {
			p.owner.Errorf("the program crashed: %s", found[0])
		}
	}
	reader, reads := p.owner.(interface {
		Failed() bool
		Logf(format string, arguments ...any)
	})
	if reads && reader.Failed() && !p.quiet {
		const most = 60
		lines := p.Log.Find(0)
		reader.Logf("the end of the log of %s:\n%s", filepath.Base(p.directory), strings.Join(lines[max(0, len(lines)-most):], "\n"))
	}
}
