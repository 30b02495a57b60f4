package main

import (
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// initLine matches the line that the runtime prints about the initialization of a package:
// init PACKAGE @0.1 ms, 0.2 ms clock, 1234 bytes, 5 allocs.
var initLine = regexp.MustCompile(`(?m)^init (github\.com/tracesmith/\S+) @.* (\d+) bytes, \d+ allocs$`)

// Every command pays for the work of packages before main. The test limits the allocated bytes,
// because time depends on the machine. Tables and patterns fit into 2 MB. Larger data, such as
// vocabularies, must be loaded when it is needed.
func TestStartupAllocatesLittle(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "tracesmith", "version")
	// An empty environment, so that the program finds no home directory, programs or daemons.
	cmd.Env = []string{"GODEBUG=inittrace=1"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	found := initLine.FindAllStringSubmatch(string(out), -1)
	if len(found) < 10 {
		t.Fatalf("only %d packages:\n%s", len(found), out)
	}
	total := 0
	for _, f := range found {
		n, err := strconv.Atoi(f[2])
		if err != nil {
			t.Fatal(err)
		}
		if total += n; n > 2<<20 {
			t.Errorf("%s allocates %d bytes before main", f[1], n)
		}
	}
	if total > 6<<20 {
		t.Errorf("the packages of tracesmith allocate %d bytes before main", total)
	}
}

// The guest in each sandbox contains no packages that only the host needs.
func TestGuestIsSmall(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "../tracesmith-guest").Output()
	if err != nil {
		t.Fatal(err)
	}
	deps := string(out)
	if !strings.Contains(deps, "containerd/ttrpc") {
		t.Fatalf("go list does not list the guest's dependencies:\n%s", deps)
	}
	for _, heavy := range []string{"docker/docker", "nats-io", "apache/arrow", "aws-sdk", "spf13", "cel.dev", "k8s.io", "net/http\n", "modelcontextprotocol", "jsonschema"} {
		if strings.Contains(deps, heavy) {
			t.Errorf("the guest links %s", strings.TrimSpace(heavy))
		}
	}
}
