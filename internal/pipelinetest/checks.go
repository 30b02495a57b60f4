package pipelinetest

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tracesmith/tracesmith/pipeline/observe"
	"github.com/tracesmith/tracesmith/pipeline/rundir"
)

// Cents makes cmp compare amounts in USD with a tolerance for rounding errors.
var Cents = cmpopts.EquateApprox(0, 1e-9)

// ExitCode returns the exit code of an error. It fails the test if the error has none.
func ExitCode(t *testing.T, err error) int {
	t.Helper()
	e, ok := errors.AsType[interface {
		error
		ExitCode() int
		Hint() string
	}](err)
	if !ok {
		t.Fatalf("the error has no exit code: %v", err)
	}
	return e.ExitCode()
}

// Ledger returns the ledger of a report. It fails the test if its numbers do not add up.
func Ledger(t *testing.T, rep observe.Report) observe.Ledger {
	t.Helper()
	l := rep.Ledger
	sum := 0
	for _, n := range l.Outcomes {
		sum += n
	}
	if l.Selected != l.Reused+l.Ran+l.Missing || l.Ran != sum || len(rep.Missing) != l.Missing {
		t.Errorf("the ledger does not add up: %+v, %d missing named", l, len(rep.Missing))
	}
	return l
}

// CheckCalls compares the calls of a report with the notes of the policy. failed and lost are
// the numbers of failed calls and of calls that never ended.
func (h *Harness) CheckCalls(t *testing.T, rep observe.Report, failed, lost int) {
	t.Helper()
	c, asked := rep.Calls, h.Count("ask ")
	if c.Made != c.Answered+c.Failed+c.LostInFlight || c.Failed != failed || c.LostInFlight != lost {
		t.Errorf("the calls do not add up: %+v", c)
	}
	if diff := cmp.Diff(float64(asked)*CallCost, c.CostUSD, Cents); lost == 0 && (diff != "" || c.Answered != asked || c.Prompt != int64(100*asked)) {
		t.Errorf("the policy noted %d calls, the report has %+v", asked, c)
	}
	if diff := cmp.Diff(float64(lost)*CallWorst, c.AtRiskUSD, Cents); diff != "" {
		t.Error("cost at risk:", diff)
	}
}

// Status reads the status of the run. It fails the test if its numbers do not add up.
func (h *Harness) Status(t *testing.T) (observe.Status, error) {
	t.Helper()
	store, err := h.Open(t.Context(), h.Dir)
	if err != nil {
		t.Fatal(err)
	}
	s, err := rundir.ReadStatus(t.Context(), h.Dir, store)
	if err == nil && (s.Selected != s.Reused+s.Ran+s.Running+s.Waiting+s.Missing || s.Selected != s.Waiting+s.Running+s.Done+s.Failed ||
		min(s.Reused, s.Ran, s.Missing, s.Waiting, s.Running, s.Done, s.Failed) < 0) {
		t.Errorf("the status does not add up: %+v", s)
	}
	return s, err
}
