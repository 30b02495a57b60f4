// Package envtest is the conformance suite for sandbox drivers. It checks what every
// driver must do, with real processes.
package envtest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tracesmith/tracesmith/env"
)

// Suite is one driver under test.
type Suite struct {
	Driver env.Driver
	// Spec is the base of every sandbox's spec; it may name an image, for example.
	Spec env.SandboxSpec
	// Isolated means that the driver isolates programs from the guest, the host and
	// the network, and enforces limits. The checks that could harm the host otherwise run
	// only if Isolated is set.
	Isolated bool
	// Remote means that programs run on another machine, so that their processes
	// are not visible on this one.
	Remote bool
	// UnenforcedLimits lists limits that something outside the driver enforces, such as the
	// control groups of a cluster's nodes, and that are not enforced in this test.
	UnenforcedLimits []string
	// Remove ends the sandbox with the given label from outside, without warning. If it is
	// nil, the checks that need it are skipped.
	Remove func(t *testing.T, label string)
}

// Run runs the whole suite.
func Run(t *testing.T, s Suite) {
	t.Helper()
	t.Setenv(secretVariable, "leak") // before any sandbox starts
	// If no sandbox starts, one failure is clearer than one per check.
	if !t.Run("starts", func(t *testing.T) { s.start(t, s.Spec) }) {
		return
	}
	for _, group := range [][]check{commandChecks, killChecks, fileChecks, searchChecks, archiveChecks, terminalChecks} {
		s.run(t, group)
	}
	if !s.Isolated {
		t.Logf("%s neither isolates nor enforces limits: skipping these checks", s.Driver.Name())
		return
	}
	s.run(t, isolationChecks)
	s.run(t, limitChecks)
	s.run(t, enforcedChecks)
	if s.Remove != nil {
		s.run(t, removalChecks)
	}
}

// patience is how long the suite waits for an event or for a program to end. It is
// long because the machine may be busy.
const patience = 5 * time.Minute

// secretVariable is an environment variable of the host that sandboxes must not see.
const secretVariable = "TRACESMITH_ENVTEST_SECRET"

type check struct {
	name string
	fn   func(t *testing.T, f *fixture)
	// adjust changes the spec of the sandbox; nil means that Suite.Spec is used unchanged.
	adjust func(*env.SandboxSpec)
}

func (s Suite) run(t *testing.T, checks []check) {
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			spec := s.Spec
			spec.Label = fmt.Sprintf("envtest %s %d", c.name, os.Getpid())
			if c.adjust != nil {
				c.adjust(&spec)
			}
			f := s.start(t, spec)
			f.label = spec.Label
			c.fn(t, f)
		})
	}
}

// Durations for which programs of this test run sleep. They identify these programs, because
// the processes of parallel test runs may be visible as well.
var (
	nap1 = fmt.Sprintf("3141.%07d", os.Getpid())
	nap2 = fmt.Sprintf("2718.%07d", os.Getpid())
)

// fixture is one running sandbox.
type fixture struct {
	env.Sandbox
	suite Suite
	label string
}

func (s Suite) start(t *testing.T, spec env.SandboxSpec) *fixture {
	t.Helper()
	sb, err := s.Driver.Start(t.Context(), spec)
	if err != nil {
		t.Fatalf("starting a sandbox: %v", err)
	}
	t.Cleanup(func() {
		if err := sb.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("closing the sandbox: %v", err)
		}
	})
	return &fixture{Sandbox: sb, suite: s}
}

// run executes a command. The test fails if the sandbox returns an error.
func (f *fixture) run(t *testing.T, c env.Command) env.Result {
	t.Helper()
	r, err := f.Run(t.Context(), c)
	if err != nil {
		t.Fatalf("running %q: %v", c.Args, err)
	}
	return r
}

// sh runs a shell script that must exit with 0, and returns its output.
func (f *fixture) sh(t *testing.T, script string) string {
	t.Helper()
	r := f.run(t, env.Command{Args: []string{"sh", "-c", script}, Timeout: patience})
	if r.ExitCode != 0 || r.TimedOut {
		t.Fatalf("script %q: exit %d, timed out %v, limit %q, output %q", script, r.ExitCode, r.TimedOut, r.Limit, r.Output)
	}
	return string(r.Output)
}

// python runs a Python program.
func (f *fixture) python(t *testing.T, timeout time.Duration, program string) env.Result {
	t.Helper()
	return f.run(t, env.Command{Args: []string{"python3", "-c", program}, Timeout: timeout})
}

// processes lists the command lines that contain a word.
func (f *fixture) processes(t *testing.T, word string) []string {
	t.Helper()
	out := f.sh(t, `for p in /proc/[0-9]*; do tr '\0' ' ' 2>/dev/null < $p/cmdline && echo; done; true`)
	return slices.DeleteFunc(strings.Split(out, "\n"), func(l string) bool { return !strings.Contains(l, word) })
}

// waitGone waits until no command line contains the word.
func (f *fixture) waitGone(t *testing.T, word string) {
	t.Helper()
	f.waitForProcesses(t, word, 0)
}

// waitForProcesses waits until n command lines contain the word.
func (f *fixture) waitForProcesses(t *testing.T, word string, n int) {
	t.Helper()
	end := time.Now().Add(patience)
	var running []string
	for time.Now().Before(end) {
		if running = f.processes(t, word); len(running) == n {
			return
		}
	}
	t.Errorf("want %d processes, running: %q", n, running)
}

// readUntil collects terminal output until it contains want.
func readUntil(t *testing.T, term env.Terminal, want string) string {
	t.Helper()
	var got bytes.Buffer
	for end := time.Now().Add(patience); time.Now().Before(end); {
		p, err := term.Read(t.Context(), time.Second)
		got.Write(p)
		if strings.Contains(got.String(), want) {
			return got.String()
		}
		if err != nil {
			t.Fatalf("reading the terminal for %q: %v after %q", want, err, got.String())
		}
	}
	t.Fatalf("no %q in the terminal's output %q", want, got.String())
	return ""
}
