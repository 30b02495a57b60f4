package soak

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/internal/hostile"
	"github.com/tracesmith/tracesmith/schemas"
)

// fakeEnv is an environment that answers every call with the same text or error.
type fakeEnv struct {
	env.Env
	text string
	err  error
}

func (a fakeEnv) Reset(context.Context, bool) (env.Info, error) { return env.Info{}, nil }
func (a fakeEnv) Close(context.Context) error                   { return nil }
func (a fakeEnv) Step(context.Context, schemas.ToolCall) (env.Info, error) {
	return env.Info{Observation: schemas.Observation{Text: a.text}}, a.err
}

// The report counts each kind of failure of an ordinary call separately, describes each
// failure, and is not OK.
func TestOrdinaryFailuresAreCounted(t *testing.T) {
	for name, c := range map[string]struct {
		e     fakeEnv
		count func(Report) int
	}{
		"wrong":  {fakeEnv{text: "nonsense"}, func(r Report) int { return r.Wrong }},
		"hung":   {fakeEnv{err: context.DeadlineExceeded}, func(r Report) int { return r.Hung }},
		"lost":   {fakeEnv{err: &env.DiedError{Reason: "gone"}}, func(r Report) int { return r.Lost }},
		"failed": {fakeEnv{err: errors.New("no answer")}, func(r Report) int { return r.Failed }},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := Run(t.Context(), Config{
				Open: func(context.Context) (env.Env, func() env.Sandbox, error) {
					return c.e, func() env.Sandbox { return nil }, nil
				},
				Calls: 20, Workers: 2, Seed: 3, Isolated: true,
			})
			if err != nil {
				t.Fatal(err)
			}
			bad := r.Hung + r.Wrong + r.Lost + r.Failed
			if r.Calls != 20 || c.count(r) != 20 || bad != 20 || r.OK() || len(r.Failures) != 20 {
				t.Errorf("%+v", r)
			}
			if r.Sandboxes < 20 { // a failed call ends its sandbox
				t.Errorf("%d sandboxes", r.Sandboxes)
			}
			if !strings.HasPrefix(r.Failures[0], "call ") {
				t.Errorf("a failure is described as %q", r.Failures[0])
			}
		})
	}
}

// The report counts each kind of failure of a hostile case separately. It also counts late
// answers, which are not failures.
func TestCasesAreCounted(t *testing.T) {
	for name, c := range map[string]struct {
		v     hostile.Verdict
		count func(Report) int
	}{
		"mis-framed": {hostile.Verdict{Misframed: []string{"x"}}, func(r Report) int { return r.Misframed }},
		"wrong":      {hostile.Verdict{Wrong: []string{"x"}}, func(r Report) int { return r.Wrong }},
		"left":       {hostile.Verdict{Leftover: []string{"x"}}, func(r Report) int { return r.Leftover }},
		"hung":       {hostile.Verdict{Answer: hostile.Answer{Err: context.DeadlineExceeded}}, func(r Report) int { return r.Hung }},
		"lost":       {hostile.Verdict{Died: true}, func(r Report) int { return r.Lost }},
		"failed":     {hostile.Verdict{Err: errors.New("x")}, func(r Report) int { return r.Failed }},
	} {
		s := newTally()
		s.addHostile(4, c.v)
		if r := s.report(0); c.count(r) != 1 || r.OK() || len(r.Failures) != 1 || !strings.HasPrefix(r.Failures[0], "call 4, ") {
			t.Errorf("%s: %+v", name, r)
		}
	}
	s := newTally()
	late := hostile.Answer{Limit: time.Second, Took: time.Second + hostile.Grace + 250*time.Millisecond}
	s.addHostile(1, hostile.Verdict{Case: hostile.Case{Name: "slow"}, Answer: late})
	s.addHostile(2, hostile.Verdict{Answer: hostile.Answer{Limit: time.Second, Took: time.Second + hostile.Grace}})
	r := s.report(0)
	if !r.OK() || r.Late != 1 || r.WorstLate != 250 || r.LateCase != "slow" || r.Hostile != 2 {
		t.Errorf("%+v", r)
	}
}

// A soak that is stopped reports its results so far.
func TestStoppedSoakReports(t *testing.T) {
	ctx, stop := context.WithCancelCause(t.Context())
	opened := 0
	r, err := Run(ctx, Config{
		Open: func(context.Context) (env.Env, func() env.Sandbox, error) {
			if opened++; opened == 3 { // every call fails, and a failed call ends its sandbox
				stop(errors.New("interrupted"))
			}
			return fakeEnv{text: "nonsense"}, func() env.Sandbox { return nil }, nil
		},
		Calls: 100, Workers: 1, Isolated: true,
	})
	if err != nil || r.Calls != 2 && r.Calls != 3 {
		t.Errorf("%d calls, %v", r.Calls, err)
	}
}

// Run returns ErrNoCase if Only matches no case that may run.
func TestUnknownCase(t *testing.T) {
	for _, only := range []string{"no such case", "fork bomb in the shell"} { // harmful cases need isolation
		if _, err := Run(t.Context(), Config{Calls: 1, Only: only}); !errors.Is(err, ErrNoCase) || !strings.Contains(err.Error(), only) {
			t.Errorf("%s: %v", only, err)
		}
	}
}
