package verify

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
)

// judgement of one run against a task's lists; reason is "" for a pass.
type judgement struct {
	f2p, p2p int // passed of each list
	reason   string
}

// judge decides whether a run meets a task's lists. It fails if a listed id is missing, if the run
// did not end by itself with exit code 0 (or 1, if tests outside the two lists fail), or if the
// records are not authentic.
func judge(spec schemas.TestSpec, run testRun) judgement {
	if spec.Expected != nil {
		return judgeExpected(spec, run)
	}
	var j judgement
	var bad []string
	listed := map[string]bool{}
	all := newCatalogue(run.tests, run.docs)
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
	j.f2p, j.p2p = count(spec.FailToPass, false), count(spec.PassToPass, spec.XFailPasses)
	otherFails := len(run.uncollected) > 0
	for id, status := range run.tests {
		otherFails = otherFails || !listed[id] && status != "passed" && status != "skipped" && status != "xfailed"
	}
	j.reason = firstReason(spec, run, bad, otherFails)
	return j
}

// judgeExpected compares a run with a task's map of expected statuses. Each test in it must have
// the expected status, and no other test may have run, except tests that were skipped or expected
// to fail. Tests that are expected to pass count as listed.
func judgeExpected(spec schemas.TestSpec, run testRun) judgement {
	var j judgement
	var bad []string
	named := map[string]bool{}
	all := newCatalogue(run.tests, run.docs)
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
		case passLike(status) != want:
			bad = append(bad, fmt.Sprintf("%s %s, not %s", id, status, want))
		case want == schemas.StatusPassed:
			j.f2p++
		}
	}
	for _, id := range slices.Sorted(maps.Keys(run.tests)) {
		if optional := []string{"xfailed", "xpassed", "skipped"}; !named[id] && !slices.Contains(optional, run.tests[id]) {
			bad = append(bad, id+" ran, and is not among the expected tests")
		}
	}
	j.reason = firstReason(spec, run, bad, failing)
	return j
}

// passLike maps a status of a run to the values that TestSpec.Expected uses.
func passLike(status string) string {
	if status == "xfailed" || status == "xpassed" {
		return schemas.StatusPassed
	}
	return status
}

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
		why := fmt.Sprintf("no test runner reported results (exit code %d)", run.ExitCode)
		if len(run.Keys) > 0 {
			why += "; if the entrypoint is a Python program that starts the tests in another process, name the test command itself"
		}
		return why
	case len(run.twice) > 0:
		return "test reported twice: " + run.twice[0]
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
