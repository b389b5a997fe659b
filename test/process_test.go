package test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"tarazu/test/harness"
)

// Given the address of an inbound and a link in these variables, this program makes one request and prints its source.
const (
	clientInbound = "TARAZU_TEST_INBOUND"
	clientLink    = "TARAZU_TEST_LINK"
)

// beClient is what the program does then.
func beClient(inbound string) (status int) {
	client := harness.NewClient(0)
	client.Inbound = inbound
	source, err := client.Get(os.Getenv(clientLink))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Print(source)
	return 0
}

// S4.5: `process` alone turns its lookup on; each program keeps its member, and not all programs have the same.
func TestStickySessions_S4_5_Process(t *testing.T) {
	t.Parallel()
	target := harness.StartTarget(t)
	_, members, tags, _ := startMembers(t, 8)
	port := harness.FreePort(t)
	process := harness.StartReady(t, harness.Monitored(
		harness.Configuration(port, object{
			"strategy": "sticky-sessions", "sticky_hash": []string{"process"}, "delay_acceptable_ratio": wide,
		}, members...),
		harness.Monitoring(target, nil),
	))
	awaitUp(process, 0, tags...)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	used := make(map[string]bool)
	directory := t.TempDir()
	for i := range 8 {
		// Process lookup tells the file that runs, not the link to it: the programs are copies.
		program := filepath.Join(directory, fmt.Sprint("program", i))
		if output, err := exec.Command("cp", self, program).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, output)
		}
		var first string
		for range 3 {
			command := exec.Command(program)
			command.Env = append(os.Environ(), clientInbound+"="+harness.NewClient(port).Inbound, clientLink+"="+target.URL)
			source, err := command.Output()
			if err != nil {
				t.Fatal(err)
			}
			if first == "" {
				first = string(source)
			}
			if string(source) != first {
				t.Errorf("program %d moves from %s to %s", i, first, source)
			}
		}
		used[first] = true
	}
	if len(used) < 2 {
		t.Errorf("all programs have the same member: %v", used)
	}
}
