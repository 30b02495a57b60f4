package metrics

import (
	"testing"

	"github.com/tracesmith/tracesmith/schemas"
)

func TestProcessMetrics(t *testing.T) {
	refused := row("pdb", map[string]any{}, "no command")
	refused.IsError, refused.ErrorClass = new(true), new(schemas.ErrBadArguments)
	missing := row("view", map[string]any{"path": "x"}, "x does not exist.")
	missing.IsError, missing.ErrorClass = new(true), new(schemas.ErrUserError)
	failed := row("bash", map[string]any{"command": "false"}, "")
	failed.IsError, failed.ErrorClass = new(true), new(schemas.ErrNonzeroExit)
	rows := []schemas.StepRow{refused, missing, missing, failed, row("bash", map[string]any{"command": "false x"}, ""), row("bash", map[string]any{"command": "ls"}, "")}
	s := seek(rows, Evidence{})
	if *s.InvalidCalls != 0.5 || *s.LongestCommandRun != 2 || *s.LongestCallRun != 2 {
		t.Errorf("invalid %v, runs %d and %d", *s.InvalidCalls, *s.LongestCommandRun, *s.LongestCallRun)
	}
	rows[5].IsError = nil
	if s := seek(rows, Evidence{}); s.InvalidCalls != nil {
		t.Error("unknown errors count as none")
	}
	if s := seek(nil, cartEvidence(t)); s.Gold != nil || s.InvalidCalls != nil || s.LongestCallRun != nil || s.Redundancy != nil {
		t.Errorf("no steps: %+v", s)
	}
	evals := []schemas.StepRow{row("eval", nil, ""), row("eval", nil, ""), row("eval", nil, "")}
	for i, passed := range []int32{1, 1, 2} {
		evals[i].TestsPassed = &passed
	}
	if s := seek(evals, cartEvidence(t)); *s.Gold.UsefulSteps != 1.0/3 {
		t.Errorf("useful steps %v", *s.Gold.UsefulSteps)
	}
}

func TestBreakpointMetrics(t *testing.T) {
	rows := []schemas.StepRow{
		pdbRow("b shop/cart.py:14", "Breakpoint 1 set at shop/cart.py:14", 0),
		pdbRow("b nowhere.py:3", "nowhere.py does not exist.", 0),
		pdbRow("b", "Breakpoints:\n1  shop/cart.py:14", 0),
		pdbRow("b shop/cart.py:14", "Breakpoint 1 was already there; it is now at shop/cart.py:14", 0),
		pdbRow("tbreak /testbed/shop/cart.py:5", "Breakpoint 2 set at shop/cart.py:5 (temporary: removed when first hit)", 0),
		pdbRow("c", "", 14),
	}
	s := seek(rows, cartEvidence(t))
	if *s.BreakpointsValid != 3.0/4 || *s.BreakpointsHit != 0.5 || *s.Gold.BreakpointsToRoot != 2 || *s.Gold.BreakpointDistance != 1 || !*s.Gold.RootLineHit {
		t.Errorf("%+v %+v", s, s.Gold)
	}
	if s := seek(rows[4:5], cartEvidence(t)); *s.Gold.RootHit || s.Gold.BreakpointsToRoot != nil || s.Gold.BreakpointDistance != nil || *s.BreakpointsHit != 0 {
		t.Errorf("never at the root: %+v", s.Gold)
	}
	if s := seek(debugged()[:2], cartEvidence(t)); s.BreakpointsValid != nil || s.Gold.RootHit != nil || s.Gold.RootLineHit != nil || s.DeadInspections != nil {
		t.Errorf("without a debugger: %+v", s.Gold)
	}
	inspections := []schemas.StepRow{
		pdbRow("p x", "1", 14), pdbRow("n", "", 15), pdbRow("p x", "1", 15), pdbRow("a", "self = 1\nprice = 2", 15), pdbRow("p price", "2", 15),
		pdbRow("p self.z", "*** AttributeError: no z", 15), pdbRow("p 1/0", "*** ZeroDivisionError: division by zero", 15),
	}
	if s := seek(inspections, Evidence{}); *s.DeadInspections != 2.0/7 { // price again, and self.z
		t.Errorf("dead inspections %v", *s.DeadInspections)
	}
}
