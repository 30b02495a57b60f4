package builtin

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/tracesmith/tracesmith/agents/canonical"
	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/tools"
)

type evalArgs struct{}

type evalSettings struct {
	tools.Settings
	// Run the tests at each reset, so that the agent sees them fail before its first step.
	OnReset bool `json:"on_reset,omitempty"`
	Timeout int  `json:"timeout,omitempty"` // time limit of a test run in seconds; 0 = sandbox.verify_timeout
}

func init() {
	register("run the task's tests", func(c evalSettings) (tools.Def[evalArgs], error) {
		var err error
		if c.Timeout < 0 {
			err = fmt.Errorf("timeout must be a number of seconds, not %d", c.Timeout)
		}
		return tools.Def[evalArgs]{
			Name: "eval", Category: "eval",
			Description: "Run the task's tests on the workspace in its current state. You get the names of the tests that failed and " +
				"the output of the test run. This tool takes no arguments.",
			TruncationHint: "run a single test with bash to see all of its output",
			Call:           c.call,
			On:             c.on,
		}, err
	})
}

// on runs the tests at a reset if OnReset is set.
func (c evalSettings) on(ctx context.Context, s *env.Session, e env.Event) (schemas.Observation, error) {
	if e.Kind != env.EventReset || !c.OnReset {
		return schemas.Observation{}, nil
	}
	return c.call(ctx, s, evalArgs{})
}

func (c evalSettings) call(ctx context.Context, s *env.Session, _ evalArgs) (schemas.Observation, error) {
	r, err := s.Eval(ctx, time.Duration(c.Timeout)*time.Second)
	if err != nil {
		return schemas.Observation{}, err
	}
	large, err := largeFileWarning(ctx, s)
	if err != nil {
		return schemas.Observation{}, err
	}
	o := schemas.Observation{
		Text:      c.summary(r) + large + "\n\n" + strings.TrimRight(stableOutput(r.Output), "\n") + "\n",
		ExitCode:  &r.ExitCode,
		TimedOut:  r.TimedOut,
		FullBytes: r.OutputBytes,
	}
	if r.TimedOut {
		o.ExitCode, o.IsError, o.ErrorClass = nil, true, schemas.ErrTimeout
	}
	return o, nil
}

// largeFileWarning returns a warning about files that are too large for a patch, or "" if there are
// none. It looks at no more than walkMaxEntries entries of the workspace.
func largeFileWarning(ctx context.Context, s *env.Session) (string, error) {
	r, err := s.Sandbox.Walk(ctx, env.WalkSpec{
		Dir: s.Workdir, Ignore: defaultIgnore, MaxEntries: walkMaxEntries, Timeout: s.CommandTimeout,
	})
	if err != nil {
		return "", err
	}
	var large []string
	for _, e := range r.Entries {
		if e.Kind == 'f' && e.Size > env.MaxFileBytes {
			large = append(large, fmt.Sprintf("%s (%d bytes)", quoteName(e.Path), e.Size))
		}
	}
	if len(large) == 0 {
		return "", nil
	}
	if n := len(large) - largeListed; n > 0 {
		large = append(large[:largeListed], fmt.Sprintf("%d more", n))
	}
	return fmt.Sprintf("\nYour result will be graded without %s: a patch cannot contain files larger than %d MiB. Delete the files you do not need.",
		strings.Join(large, ", "), env.MaxFileBytes>>20), nil
}

const (
	walkMaxEntries = 50_000
	largeListed    = 5
)

// evalListed is the maximum length of each list of tests in the summary.
const evalListed = 20

// summary describes a test run from the results in the report. It does not read the output.
func (c evalSettings) summary(r env.EvalReport) string {
	var failing []string
	passed, failed := r.Counts()
	for id, status := range r.Tests {
		if status == "failed" || status == "error" {
			failing = append(failing, id+" ("+status+")")
		}
	}
	slices.Sort(failing)
	var b strings.Builder
	switch {
	case r.TimedOut && c.Timeout > 0:
		fmt.Fprintf(&b, "The tests timed out after %s and were stopped.", time.Duration(c.Timeout)*time.Second)
	case r.TimedOut:
		b.WriteString("The tests did not finish in time and were stopped.")
	case r.Passed && failed > 0:
		b.WriteString("The required tests pass.")
	case r.Passed:
		b.WriteString("The tests pass.")
	default:
		b.WriteString("The tests do not pass.")
	}
	if len(r.Tests) > 0 {
		fmt.Fprintf(&b, " %d passed, %d failed.", passed, failed)
		if r.Passed && failed > 0 && !r.TimedOut {
			b.WriteString(" The failed tests are not required.")
		}
	} else if !r.TimedOut && !r.Died {
		fmt.Fprintf(&b, " The command ended with exit code %d.", r.ExitCode)
	}
	b.WriteString(earlyEnd(r))
	writeList(&b, failing)
	if len(r.NotRun) > 0 {
		b.WriteString("\n" + plural(len(r.NotRun), "test") + " did not run:")
		writeList(&b, r.NotRun)
	}
	return b.String()
}

// earlyEnd describes how and where an incomplete test run stopped. It returns "" for a complete one.
func earlyEnd(r env.EvalReport) string {
	where := "before any test began"
	switch {
	case r.TimedOut && r.Running != "":
		return " The running test was " + r.Running + "."
	case r.TimedOut || !r.Died && r.Running == "":
		return ""
	case r.Running != "":
		where = "in " + r.Running
	case len(r.Tests) > 0 && len(r.NotRun) > 0:
		where = "between two tests"
	case len(r.Tests) > 0:
		where = "after the last test"
	}
	how := fmt.Sprintf("exit code %d", r.ExitCode)
	if n := syscall.Signal(r.ExitCode - 128); r.ExitCode > 128 && !strings.HasPrefix(n.String(), "signal ") {
		how += fmt.Sprintf(" (signal %d, %s)", int(n), n)
	}
	return " The test process ended early, " + where + ", with " + how + "."
}

// writeList writes test IDs, one per line. After evalListed of them it writes how many remain.
func writeList(b *strings.Builder, ids []string) {
	for i, id := range ids {
		if i == evalListed {
			fmt.Fprintf(b, "\n  and %d more", len(ids)-i)
			return
		}
		b.WriteString("\n  " + id)
	}
}

// Parts of the output of pytest that vary although the workspace is the same, and that package
// canonical does not cover: lines that describe the machine, and numbered directories.
var (
	machineLines = regexp.MustCompile(`(?m)^(platform |cachedir: |rootdir: |plugins: |configfile: ).*\n`)
	pytestDirs   = regexp.MustCompile(`/tmp/pytest-of-\w+/pytest-\d+\b`)
)

// stableEnds is the number of bytes at each end of an output that stableOutput rewrites. A model
// never sees more. Rewriting all of a huge output could take longer than the tests' timeout.
const stableEnds = tools.MaxText

// stableOutput removes the parts of a test run's output that vary although the workspace is the
// same.
func stableOutput(s string) string {
	if len(s) > 2*stableEnds {
		return stableOutput(s[:stableEnds]) + s[stableEnds:len(s)-stableEnds] + stableOutput(s[len(s)-stableEnds:])
	}
	s = machineLines.ReplaceAllString(s, "")
	s = pytestDirs.ReplaceAllString(s, "/tmp/...")
	return canonical.Text(s, canonical.Durations, canonical.Addresses, canonical.TemporaryNames)
}
