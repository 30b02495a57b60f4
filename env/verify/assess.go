package verify

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
)

// assessment is the result of comparing a run with a task's lists.
type assessment struct {
	f2p, p2p int    // number of tests of each list that passed
	reason   string // why the run does not pass, "" if it does
}

// assess compares a run with a task's lists. The run does not pass if a listed test did not run or
// pass, if the run did not end by itself with exit code 0 (or 1, if tests outside the two lists
// fail), or if the records are not authentic.
func assess(spec schemas.TestSpec, run testRun) assessment {
	if spec.Expected != nil {
		return assessExpected(spec, run)
	}
	var a assessment
	var bad []string
	listed := map[string]bool{}
	all := newTestIndex(run.tests, run.docs)
	count := func(ids []string, xfail bool) (passed int) {
		for _, id := range ids {
			for _, full := range all.find(id) {
				listed[full] = true
			}
			switch status, ran := all.status(id); {
			case status == "passed", xfail && status == "xfailed":
				passed++
			case !ran:
				bad = append(bad, id+" did not run")
			default:
				bad = append(bad, id+" "+status)
			}
		}
		return passed
	}
	a.f2p, a.p2p = count(spec.FailToPass, false), count(spec.PassToPass, spec.XFailPasses)
	otherFails := len(run.uncollected) > 0
	for id, status := range run.tests {
		otherFails = otherFails || !listed[id] && status != "passed" && status != "skipped" && status != "xfailed"
	}
	a.reason = firstReason(spec, run, bad, otherFails)
	return a
}

// assessExpected compares a run with a task's map of expected statuses. Each test in the map must have
// the expected status. No other test may have run, except tests that were skipped or marked as
// expected to fail. f2p counts the tests that passed as expected.
func assessExpected(spec schemas.TestSpec, run testRun) assessment {
	var a assessment
	var bad []string
	named := map[string]bool{}
	all := newTestIndex(run.tests, run.docs)
	failing := len(run.uncollected) > 0
	for _, id := range slices.Sorted(maps.Keys(spec.Expected)) {
		want := spec.Expected[id]
		status, ran := all.status(id)
		for _, full := range all.find(id) {
			named[full] = true
		}
		if want != schemas.StatusPassed {
			failing = failing || want != schemas.StatusSkipped
		} else {
			spec.FailToPass = append(spec.FailToPass, id)
		}
		switch {
		case !ran:
			bad = append(bad, id+" did not run")
		case expectedStatus(status) != want:
			bad = append(bad, fmt.Sprintf("%s %s, not %s", id, status, want))
		case want == schemas.StatusPassed:
			a.f2p++
		}
	}
	for _, id := range slices.Sorted(maps.Keys(run.tests)) {
		if optional := []string{"xfailed", "xpassed", "skipped"}; !named[id] && !slices.Contains(optional, run.tests[id]) {
			bad = append(bad, id+" ran, and is not among the expected tests")
		}
	}
	a.reason = firstReason(spec, run, bad, failing)
	return a
}

// expectedStatus maps a status of a run to the values that TestSpec.Expected uses.
func expectedStatus(status string) string {
	if status == "xfailed" || status == "xpassed" {
		return schemas.StatusPassed
	}
	return status
}

// firstReason returns the first reason for which a run does not pass, "" if there is none. bad describes
// the listed tests that did not pass, and otherFails is true if other tests failed.
func firstReason(spec schemas.TestSpec, run testRun, bad []string, otherFails bool) string {
	unclean := func(code int) bool { return code != 0 && (code != 1 || !otherFails) }
	switch {
	case run.TimedOut:
		return "the tests ran out of time"
	case run.Limit != "":
		return "the tests reached the sandbox's limit of " + run.Limit
	case len(run.tampered) > 0:
		return "tampering: " + run.tampered[0]
	case run.unfinished:
		return fmt.Sprintf("the test runner did not finish (exit code %d)", run.ExitCode)
	case spec.Method == schemas.VerifyExitCode:
		if run.ExitCode != 0 {
			return fmt.Sprintf("the entrypoint exited with code %d", run.ExitCode)
		}
		return ""
	case run.runners == 0:
		reason := fmt.Sprintf("no test runner reported results (exit code %d)", run.ExitCode)
		if len(run.Keys) > 0 {
			reason += "; if the entrypoint is a Python program that starts the tests in another process, name the test command itself"
		}
		return reason
	case len(run.duplicates) > 0:
		return "test reported twice: " + run.duplicates[0]
	case len(bad) > 0:
		return fmt.Sprintf("%d of %d expected tests did not pass: %s", len(bad),
			len(spec.FailToPass)+len(spec.PassToPass), strings.Join(bad[:min(len(bad), 3)], ", "))
	case len(spec.FailToPass)+len(spec.PassToPass) == 0:
		return "the task expects no test to pass"
	case unclean(run.exit):
		return fmt.Sprintf("unexpected exit: the test runner exited with code %d", run.exit)
	case unclean(run.ExitCode):
		return fmt.Sprintf("unexpected exit: the entrypoint exited with code %d", run.ExitCode)
	}
	return ""
}
