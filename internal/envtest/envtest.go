// Package envtest is the conformance suite of sandboxes: what every driver must
// do, with real processes. It imports env and the standard library only.
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
	// Spec is the base of every sandbox (an image, for example).
	Spec env.SandboxSpec
	// Isolated: the driver keeps programs from the guest, the host and the
	// network, and enforces limits. Tests that would harm the host otherwise run
	// only then.
	Isolated bool
	// Elsewhere: the programs run on another machine, so that what is alive there
	// cannot be seen from here.
	Elsewhere bool
	// Absent are limits that something outside the driver would enforce and that
	// is not there in this test, such as the control groups of a cluster's nodes.
	Absent []string
	// Remove ends the sandbox that carries a label from outside, without warning;
	// nil: that is not checked.
	Remove func(t *testing.T, label string)
}

// Run runs the whole suite.
func Run(t *testing.T, s Suite) {
	t.Helper()
	t.Setenv(secretName, "leak") // before any sandbox starts
	// One clear message where nothing starts at all.
	if !t.Run("starts", func(t *testing.T) { s.start(t, s.Spec) }) {
		return
	}
	for _, group := range [][]check{commandChecks, killChecks, fileChecks, searchChecks, archiveChecks, terminalChecks} {
		s.run(t, group)
	}
	if !s.Isolated {
		t.Logf("%s isolates nothing and enforces no limit: the checks of both are left out", s.Driver.Name())
		return
	}
	s.run(t, isolationChecks)
	s.run(t, limitChecks)
	s.run(t, enforcedChecks)
	if s.Remove != nil {
		s.run(t, underneathChecks)
	}
}

// patience is how long the suite waits for what must happen, and what a program may
// take that ends by itself: only a busy machine or a defect needs much of it.
const patience = 5 * time.Minute

// secretName is a variable of the host in all of the suite.
const secretName = "TRACESMITH_ENVTEST_SECRET"

type check struct {
	name string
	fn   func(t *testing.T, f *fixture)
	// adjust changes the sandbox asked for; nil: the base.
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

// Durations that programs of this run sleep: no other run beside it uses them, so
// that whoever sleeps that long is ours even where all processes are visible.
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

// run executes a command that must not fail as infrastructure.
func (f *fixture) run(t *testing.T, c env.Command) env.Result {
	t.Helper()
	r, err := f.Run(t.Context(), c)
	if err != nil {
		t.Fatalf("running %q: %v", c.Args, err)
	}
	return r
}

// sh runs a shell script and wants exit code 0.
func (f *fixture) sh(t *testing.T, script string) string {
	t.Helper()
	r := f.run(t, env.Command{Args: []string{"sh", "-c", script}, Timeout: patience})
	if r.ExitCode != 0 || r.TimedOut {
		t.Fatalf("script %q: exit %d, timed out %v, limit %q, output %q", script, r.ExitCode, r.TimedOut, r.Limit, r.Output)
	}
	return string(r.Output)
}

// python runs a program given as text.
func (f *fixture) python(t *testing.T, timeout time.Duration, program string) env.Result {
	t.Helper()
	return f.run(t, env.Command{Args: []string{"python3", "-c", program}, Timeout: timeout})
}

// processes lists the command lines that hold a word, without the one that asks.
func (f *fixture) processes(t *testing.T, word string) []string {
	t.Helper()
	out := f.sh(t, `for p in /proc/[0-9]*; do tr '\0' ' ' 2>/dev/null < $p/cmdline && echo; done; true`)
	return slices.DeleteFunc(strings.Split(out, "\n"), func(l string) bool { return !strings.Contains(l, word) })
}

// gone waits until no process holds the word.
func (f *fixture) gone(t *testing.T, word string) {
	t.Helper()
	f.runs(t, word, 0)
}

// runs waits until n processes hold the word.
func (f *fixture) runs(t *testing.T, word string, n int) {
	t.Helper()
	end := time.Now().Add(patience)
	var left []string
	for time.Now().Before(end) {
		if left = f.processes(t, word); len(left) == n {
			return
		}
	}
	t.Errorf("%d processes wanted, running: %q", n, left)
}

// readUntil collects terminal output until it holds want.
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
