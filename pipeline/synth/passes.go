package synth

import (
	"time"

	"github.com/tracesmith/tracesmith/env/verify"
)

const (
	grace       = 20 * time.Second // wait for an answer after the run's own timeout
	coverFactor = 3                // how much slower a probe may make a run
)

// request is one run of the tests (python/tracesmith_session.py).
type request struct {
	Runner   string            `json:"runner"` // pytest or unittest
	Argv     []string          `json:"argv"`
	Module   bool              `json:"module"` // started with python -m
	Env      map[string]string `json:"env,omitempty"`
	Compile  bool              `json:"compile,omitempty"` // the run may write compiled code to the tree
	Files    map[string]string `json:"-"`                 // replacements of files of the tree
	Changed  []string          `json:"changed,omitempty"` // their names
	First    []string          `json:"first,omitempty"`   // tests that run first; if all of them pass, the run ends
	Only     []string          `json:"only"`              // nil = all
	Shuffle  int64             `json:"shuffle,omitempty"`
	Most     int               `json:"most,omitempty"`     // failures after which the run ends; 0 = none
	Describe int               `json:"describe,omitempty"` // number of failures to describe
	Timeout  float64           `json:"timeout"`            // seconds
	Probe    *probe            `json:"probe,omitempty"`
	Passes   []pass            `json:"passes,omitempty"` // runs in forks of one interpreter, instead of one run
	Budget   float64           `json:"budget,omitempty"` // seconds of all passes
}

type probe struct {
	Source string `json:"source"`
	Config any    `json:"config"`
	Limit  int64  `json:"-"`
}

// answer is a runner's report of one run. It is untrusted.
type answer struct {
	Records  []record `json:"records"`
	TimedOut bool     `json:"timed_out"`
	Seconds  float64  `json:"seconds"`
	CPU      float64  `json:"cpu"`
	Log      string   `json:"log"`
	Left     []string `json:"left"`
}

type record struct {
	Kind   string `json:"k"` // test, failure, collect, end, broke
	ID     string `json:"id"`
	Status string `json:"s"`
	Detail string `json:"text"`
	What   string `json:"what"`
	Code   int    `json:"code"`
	endOfPass
	Failure
}

// run is one run of the tests.
type run struct {
	answer
	tests       map[string]string
	failures    []Failure
	uncollected []string
	whole       bool // the runner finished
	code        int
	probe       []byte // output of the probe
	passes      []run  // in order, if there were several
	number      int    // of a pass
}

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
