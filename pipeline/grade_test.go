package pipeline_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/internal/pipelinetest"
	"github.com/tracesmith/tracesmith/schemas"
)

// A workspace that a patch cannot represent is the agent's failure, not an infrastructure
// failure. The job is not retried, and no tests run.
func TestWorkspaceWithoutPatchIsTheAgentsFailure(t *testing.T) {
	t.Parallel()
	h := newHarness(filepath.Join(t.TempDir(), "run"), 1)
	h.OnPatch = func() error { return fmt.Errorf("reading the patch: %w: sub/.git", env.ErrRefused) }
	rep, err := h.Run(t.Context())
	if err != nil || h.Count("verify bug-01") != 0 || rep.Friction.InfraRetries != 0 || pipelinetest.Ledger(t, rep).Outcomes[schemas.OutcomeAgentError] != 1 {
		t.Fatalf("%+v %v", rep.Ledger, err)
	}
	if cause := rep.Episodes[0].Cause; !strings.Contains(cause, "sub/.git") {
		t.Errorf("the summary does not say why: %q", cause)
	}
	for _, s := range h.Staged(t) {
		e := s.Episode
		if e.ExitReason != schemas.ExitBadWorkspace || e.TerminationClass != "agent" || *e.ErrorClass != schemas.ExitBadWorkspace ||
			!strings.Contains(*e.ErrorMessage, "sub/.git") || e.Patch != nil || e.Resolved != nil || e.Reward != nil || e.VerifyStatus != schemas.VerifyNotRun || *e.Outcome != schemas.OutcomeAgentError {
			t.Errorf("%+v", e)
		}
	}
}

// If the patch lacks files, failing tests give no verdict, because the missing files may be the
// cause: the episode has VerifyNotRun, although the tests ran. Passing tests do give a verdict.
func TestPatchesThatLeaveFilesOut(t *testing.T) {
	for _, resolved := range []bool{false, true} {
		h := newHarness(filepath.Join(t.TempDir(), "run"), 1)
		h.LeftOut = []schemas.OmittedFile{{Path: "core.1", Bytes: 70_000_000}}
		h.OnVerify = func(schemas.Task) (schemas.Verdict, error) {
			if resolved {
				return schemas.Verdict{Resolved: &resolved, Status: schemas.VerifiedPass, Method: "pytest"}, nil
			}
			return schemas.Verdict{Resolved: &resolved, Status: schemas.VerifiedFail, Method: "pytest", Reason: "test_add fails"}, nil
		}
		h.MustRun(t)
		for _, s := range h.Staged(t) {
			e := s.Episode
			if diff := cmp.Diff([]string{"core.1"}, e.PatchLeftOut); diff != "" {
				t.Error(diff)
			}
			if resolved && (*e.Outcome != schemas.OutcomeResolved || e.ExitReason != schemas.ExitSubmitted) {
				t.Errorf("passing tests: %+v", e)
			}
			if !resolved && (e.Resolved != nil || e.Reward != nil || e.VerifyStatus != schemas.VerifyNotRun || e.ExitReason != schemas.ExitBadWorkspace ||
				*e.Outcome != schemas.OutcomeAgentError || !strings.Contains(*e.VerifyReason, "core.1 (70000000 bytes)") || !strings.Contains(*e.VerifyReason, "test_add fails")) {
				t.Errorf("failing tests: %+v", e)
			}
		}
	}
}
