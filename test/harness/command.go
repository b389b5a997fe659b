package harness

import (
	"bytes"
	"errors"
	"os/exec"
	"strings"
)

// Result is how a command ended.
type Result struct {
	Status int
	Output string
	Errors string
}

// ErrorLines are the lines on stderr.
func (r Result) ErrorLines() []string {
	return strings.Split(strings.TrimRight(r.Errors, "\n"), "\n")
}

// Run runs the program with arguments in a directory, gives it input, and waits for its end.
func Run(owner Owner, directory, input string, arguments ...string) Result {
	owner.Helper()
	var output, errorOutput bytes.Buffer
	command := exec.Command(Binary(owner), arguments...)
	command.Dir, command.Stdin = directory, strings.NewReader(input)
	command.Stdout, command.Stderr = &output, &errorOutput
	err := command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		owner.Fatalf("run the program: %v", err)
	}
	return Result{command.ProcessState.ExitCode(), output.String(), errorOutput.String()}
}
