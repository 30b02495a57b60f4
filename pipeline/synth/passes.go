package synth

import (
	"context"
	"errors"
	"fmt"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/verify"
)

// pass is one of several runs in forks of an interpreter that has collected the tests once. They
// share a sandbox, so that one pass can meet what an earlier one left there.
type pass struct {
	Only     []string `json:"only"`
	Shuffle  int64    `json:"shuffle,omitempty"`
	Most     int      `json:"most,omitempty"`
	Describe int      `json:"describe,omitempty"`
	Timeout  float64  `json:"timeout"` // seconds
	Probe    *probe   `json:"probe,omitempty"`
	// Follows makes a pass depend on the first one: it runs only if tests failed there, but no more
	// than Most of the first pass.
	Follows bool `json:"follows,omitempty"`
	// Failing replaces Only by the first failing tests of the first pass, so many of them.
	Failing int `json:"failing,omitempty"`
}

// limit sets the timeout of the tests.
func (q *request) limit(seconds float64) {
	if q.Timeout = seconds; len(q.Passes) == 0 {
		return
	}
	q.Budget = 0
	for i := range q.Passes {
		q.Passes[i].Timeout = seconds
		if q.Passes[i].Probe != nil {
			q.Passes[i].Timeout *= coverFactor
		}
		q.Budget += q.Passes[i].Timeout
	}
	q.Timeout = q.Budget + grace.Seconds()
}

// verdicts returns the run that gives the verdicts: the first pass, if there is one.
func (r run) verdicts() run {
	first := r.pass(0)
	if first == nil {
		return r
	}
	first.Left, first.Log, first.uncollected = r.Left, r.Log, r.uncollected
	return *first
}

// pass returns a pass of the run; nil if it did not run.
func (r run) pass(number int) *run {
	for _, p := range r.passes {
		if p.number == number {
			return &p
		}
	}
	return nil
}

func probeOf(p *verify.Probe) *probe {
	return &probe{Source: p.Source, Config: p.Config, Limit: p.Limit}
}

// endOfPass is the part of a record that ends a pass.
type endOfPass struct {
	Number   int  `json:"n"`
	TimedOut bool `json:"timed_out"`
	Whole    bool `json:"whole"`
}

// sort distributes the records to the fields of the run and of its passes.
func (r *run) sort() {
	all := r.Records
	r.Records, r.tests = nil, map[string]string{}
	for _, rec := range all {
		switch rec.Kind {
		case "test":
			r.tests[rec.ID] = rec.Status
		case "failure":
			rec.Failure.Test = rec.ID
			rec.Failure.Text = rec.Detail
			rec.Failure.settle()
			r.failures = append(r.failures, rec.Failure)
		case "collect":
			r.uncollected = append(r.uncollected, rec.ID)
		case "pass":
			done := run{tests: r.tests, failures: r.failures, whole: rec.Whole, code: rec.Code, number: rec.Number}
			done.TimedOut = rec.TimedOut
			r.passes = append(r.passes, done)
			r.tests, r.failures = map[string]string{}, nil
		case "end":
			r.whole, r.code = true, rec.Code
		}
	}
}

// readPasses reads what the probes of the passes wrote.
func (b *bench) readPasses(ctx context.Context, sb env.Sandbox, q request, r *run) (err error) {
	for i, p := range r.passes {
		if p.number < 0 || p.number >= len(q.Passes) || q.Passes[p.number].Probe == nil {
			continue
		}
		r.passes[i].probe, _, err = sb.ReadFile(ctx, fmt.Sprintf("%s/probe.%d", scratch(sb), p.number), q.Passes[p.number].Probe.Limit)
		if err != nil && !errors.Is(err, env.ErrNotExist) && !errors.Is(err, env.ErrRefused) {
			return err
		}
	}
	return nil
}
