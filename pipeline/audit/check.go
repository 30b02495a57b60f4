package audit

import (
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
)

// Check returns the verdict on a claim, given what the steps before it have shown. In doubt, the claim is
// unchecked.
func Check(c schemas.Claim, r *Record) schemas.CheckedClaim {
	v := unchecked("observations do not decide this")
	switch c.Kind {
	case schemas.ClaimFails, schemas.ClaimPasses:
		v = r.checkTests(c)
	case schemas.ClaimReports:
		v = r.checkReport(c)
	case schemas.ClaimSource:
		v = r.checkSource(c)
	case schemas.ClaimDefines:
		v = r.checkDefinition(c)
	case schemas.ClaimCalls:
		v = r.checkCall(c)
	case schemas.ClaimReaches, schemas.ClaimNotReached:
		v = r.checkReached(c)
	case schemas.ClaimStops:
		v = r.checkStop(c)
	case schemas.ClaimBreakpoint:
		v = r.checkBreakpoint(c)
	case schemas.ClaimValue:
		v = r.checkValue(c.Expression, c.Value)
	case schemas.ClaimExecuted, schemas.ClaimNotExecuted:
		v = r.checkExecuted(c)
	case schemas.ClaimReturns:
		v = r.checkReturn(c)
	case schemas.ClaimEqual, schemas.ClaimDiffers:
		v = r.checkEqual(c)
	case schemas.ClaimContradicts:
		v = r.checkContradiction(c)
	case schemas.ClaimCause:
		v = r.checkCause(c)
	}
	return schemas.CheckedClaim{Claim: c, Verdict: v.is, Why: v.why}
}

// lastRun returns the last run of the tests. whole says that no earlier run had more tests and that no edit
// came after it.
func (r *Record) lastRun() (run *TestRun, whole bool) {
	if len(r.Tests) == 0 {
		return nil, false
	}
	run = &r.Tests[len(r.Tests)-1]
	whole = run.Passed >= 0 && run.Failed >= 0
	for _, t := range r.Tests {
		whole = whole && t.Passed+t.Failed <= run.Passed+run.Failed
	}
	for _, e := range r.Edits {
		whole = whole && e.Step < run.Step
	}
	return run, whole
}

func (r *Record) checkTests(c schemas.Claim) verdict {
	run, whole := r.lastRun()
	if run == nil {
		return unchecked("no tests were run")
	}
	if c.Test != "" {
		return checkTest(c, run, whole)
	}
	got := run.Failed
	if c.Kind == schemas.ClaimPasses {
		got = run.Passed
	}
	switch {
	case !whole:
		return unchecked("the tests were not all run since the last edit")
	case c.Count == nil && got > 0, c.Count != nil && *c.Count == got:
		return isTrue("%d passed, %d failed", run.Passed, run.Failed)
	}
	return isFalse("%d passed, %d failed", run.Passed, run.Failed)
}

func checkTest(c schemas.Claim, run *TestRun, whole bool) verdict {
	result := run.Result(bareTest(c.Test))
	failed := 0
	for _, t := range run.Results {
		if t.Outcome != "passed" {
			failed++
		}
	}
	switch {
	case result != nil && (result.Outcome == "passed") == (c.Kind == schemas.ClaimPasses):
		return isTrue("%s %s", result.ID, result.Outcome)
	case result != nil:
		return isFalse("%s %s", result.ID, result.Outcome)
	case whole && failed == run.Failed && c.Kind == schemas.ClaimFails:
		return isFalse("it is not among the failing tests")
	case whole && failed == run.Failed:
		return isTrue("it is not among the failing tests")
	}
	return unchecked("the output does not name the test")
}

func (r *Record) checkReport(c schemas.Claim) verdict {
	if c.Test != "" {
		for i := len(r.Tests) - 1; i >= 0; i-- {
			result := r.Tests[i].Result(bareTest(c.Test))
			if result == nil || result.Message == "" {
				continue
			}
			kind, _, _ := strings.Cut(c.Message, " ")
			switch {
			case strings.Contains(result.Message, c.Message):
				return isTrue("the test reports it")
			case r.shown(c.Message):
				return isTrue("the output has this text")
			case strings.HasPrefix(result.Message, kind+" "):
				return isFalse("the test reports %s", short(result.Message))
			}
			return unchecked("the test reports %s", short(result.Message))
		}
	}
	if r.shown(c.Message) {
		return isTrue("an observation has this text")
	}
	return unchecked("no observation has this text")
}

// shown reports whether an observation contains a text.
func (r *Record) shown(text string) bool {
	return slices.ContainsFunc(r.texts, func(t string) bool { return strings.Contains(t, text) })
}

func (r *Record) checkContradiction(c schemas.Claim) verdict {
	v := r.checkValue(c.Expression, c.Value)
	switch {
	case v.is != schemas.ClaimTrue:
		return v
	case sameValue(c.Value, c.Other):
		return isFalse("the values are equal")
	case r.shown(c.Other):
		return isTrue("%s, and an observation shows %s", v.why, short(c.Other))
	}
	return unchecked("no observation shows %s", short(c.Other))
}

func (r *Record) checkEqual(c schemas.Claim) verdict {
	a, b := r.latest(c.Expression), r.latest(c.Other)
	if a == nil || b == nil {
		return unchecked("the values were not printed")
	}
	if same := sameValue(a.Text, b.Text); same == (c.Kind == schemas.ClaimEqual) {
		return isTrue("%s and %s were printed", short(a.Text), short(b.Text))
	}
	return isFalse("%s and %s were printed", short(a.Text), short(b.Text))
}
