package discover

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/tracesmith/tracesmith/env/verify"
	"github.com/tracesmith/tracesmith/env/workspace/setup"
	"github.com/tracesmith/tracesmith/schemas"
)

// outcome is the result of an attempt.
type outcome struct {
	plan        plan
	task        schemas.Task
	run         verify.Run
	setupFailed bool
	output      string // of the failed set-up command, or of the tests
	foreign     string // a module of the checkout that was imported from elsewhere, see foreignImport
	cause       string // why tests do not pass; "" if all do
	passed      int
	failed      int
	uncollected []string
	usable      bool
}

// better reports whether o is a better setup than other.
func (o outcome) better(other outcome) bool {
	if o.usable != other.usable {
		return o.usable
	}
	if o.usable && o.run.TimedOut != other.run.TimedOut {
		return other.run.TimedOut
	}
	// A test that can be collected counts more than one that fails.
	return cmp.Or(o.passed-other.passed, len(other.uncollected)-len(o.uncollected), other.failed-o.failed) > 0
}

// complete reports whether o is so good that no other plan needs to be tried: all tests are collected, and at least
// 20 pass for each one that fails.
func (o outcome) complete() bool {
	return o.usable && len(o.uncollected) == 0 && o.failed*20 <= o.passed
}

// slow reports whether all tests are collected and some pass, but not all finish within the time limit.
func (o outcome) slow() bool {
	return o.run.TimedOut && o.foreign == "" && o.passed > 0 && len(o.uncollected) == 0
}

// hung returns the test that took more than half of the time of a run that ran out of time, "" if there is none.
func (o outcome) hung() string {
	left := o.run.Wall.Seconds()
	for _, s := range o.run.Seconds {
		left -= s
	}
	if !o.run.TimedOut || left < o.run.Wall.Seconds()/2 {
		return ""
	}
	return o.run.Running
}

// maxFailing is how many tests may fail for each one that passes.
const maxFailing = 10

// judge makes an outcome of what Config.Try returned. It returns an error that the plan did not cause.
func judge(run verify.Run, err error) (outcome, error) {
	o := outcome{run: run, output: string(run.Output)}
	if e, ok := errors.AsType[*setup.CommandError](err); ok {
		o.setupFailed, o.output, o.cause = true, e.Output, missingTool(e.Output)+e.Summary()
		return o, nil
	}
	if e, ok := errors.AsType[*verify.TaskError](err); ok {
		o.cause = e.Summary()
		return o, nil
	}
	if err != nil {
		return o, err
	}
	for _, id := range slices.Sorted(maps.Keys(run.Tests)) {
		switch run.Tests[id] {
		case "passed":
			o.passed++
		case "failed", "error":
			o.failed++
			o.cause = cmp.Or(o.cause, id+" "+run.Tests[id])
		}
	}
	o.foreign = foreignImport(run.Probe)
	o.uncollected = slices.Clone(run.Uncollected)
	slices.Sort(o.uncollected)
	knownRunner := run.Method != schemas.VerifyExitCode
	// A bug makes some tests fail. If nearly all fail, the setup is incomplete.
	o.usable = knownRunner && o.foreign == "" && o.passed > 0 && o.failed <= maxFailing*o.passed && (run.Finding == "" || o.slow())
	switch {
	case run.Untrusted:
		o.cause = "the results of the tests cannot be trusted: " + run.Finding
	case o.foreign != "":
		o.cause = o.foreign
	case run.TimedOut:
		o.cause = run.Finding
	case run.Finding != "" || !knownRunner || len(o.uncollected) > 0:
		o.cause = cmp.Or(verify.Cause(run.Output), run.Finding)
		if !run.NoTestsStarted && run.Finding != "" {
			o.cause = run.Finding + ": " + o.cause
		}
	case o.passed == 0 && o.failed == 0:
		o.cause = "the runner found no tests"
	case o.failed > 0:
		o.cause = fmt.Sprintf("%d of %d tests do not pass, the first: %s: %s", o.failed, o.failed+o.passed, o.cause, verify.Cause(run.Output))
	}
	return o, nil
}

var noCommand = regexp.MustCompile(`command '([^']+)' failed: No such file|unable to execute '([^']+)': No such file|fatal error: ([\w./-]+\.h): No such file|can't find Rust compiler|(\S+): command not found|Did not find (?:program|CMake) ?(\S*)`)

// missingTool says which program or header file a build did not find, "" if the output does not tell.
func missingTool(output string) string {
	m := noCommand.FindStringSubmatch(output)
	if m == nil {
		return ""
	}
	tool := cmp.Or(m[1], m[2], m[3], m[4], m[5], "the Rust compiler")
	if tool == "Python.h" {
		tool += " (the headers of Python, such as the package python3-dev)"
	}
	return "the build needs " + tool + ", which this machine does not have: "
}
