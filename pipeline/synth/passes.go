package synth

import (
	"time"

	"github.com/tracesmith/tracesmith/env/verify"
)

const (
	grace       = 20 * time.Second // how long to wait for an answer after the timeout of the run itself
	probeFactor = 3                // how many times slower a run with a probe may be
)

// request describes one run of the tests, for python/tracesmith_session.py.
type request struct {
	Runner      string            `json:"runner"` // pytest or unittest
	Argv        []string          `json:"argv"`
	Module      bool              `json:"module"` // started with python -m
	Env         map[string]string `json:"env,omitempty"`
	Compile     bool              `json:"compile,omitempty"`      // the run may write compiled code to the tree
	Files       map[string]string `json:"-"`                      // path -> new content of a file of the tree
	Changed     []string          `json:"changed,omitempty"`      // the paths of Files
	First       []string          `json:"first,omitempty"`        // tests to run first; if they all pass, the run ends
	Only        []string          `json:"only"`                   // the tests to run; nil = all
	Shuffle     int64             `json:"shuffle,omitempty"`      // seed of the order; 0 = the usual order; negative = the opposite of the order of -Shuffle
	MaxFailures int               `json:"max_failures,omitempty"` // the run ends when more tests fail; 0 = no limit
	Describe    int               `json:"describe,omitempty"`     // number of failures to describe
	Clocks      bool              `json:"clocks,omitempty"`       // whether to find tests that compare times
	Timeout     float64           `json:"timeout"`                // seconds
	CPULimit    float64           `json:"cpu_limit,omitempty"`    // seconds of CPU time, after which the tests time out; 0 = no limit
	Probe       *probe            `json:"probe,omitempty"`
	Passes      []pass            `json:"passes,omitempty"` // if set, these replace the single run
	Budget      float64           `json:"budget,omitempty"` // seconds for all passes together
}

// probe is a verify.Probe in the form that python/tracesmith_session.py reads.
type probe struct {
	Source string `json:"source"`
	Config any    `json:"config"`
	Limit  int64  `json:"-"`
}

// answer is a runner's report of one run. It is untrusted, because the tests can write to it.
type answer struct {
	Records   []record `json:"records"`
	TimedOut  bool     `json:"timed_out"`
	Seconds   float64  `json:"seconds"`
	CPU       float64  `json:"cpu"`
	Log       string   `json:"log"`
	Leftovers []string `json:"left"`
}

// record is one event of a run: the result of a test, the description of a failure, a file that
// cannot be collected, the end of a pass or of the run, or an exception in the runner.
type record struct {
	Kind   string `json:"k"` // test, failure, collect, pass, end, broke
	ID     string `json:"id"`
	Status string `json:"s"`
	Detail string `json:"text"`
	What   string `json:"what"`
	Code   int    `json:"code"`
	Clock  bool   `json:"clock"`
	passEnd
	Failure
}

// run is the result of one run of the tests.
type run struct {
	answer
	tests       map[string]string // test -> status
	failures    []Failure
	uncollected []string
	finished    bool // the runner reached its end
	code        int
	clocks      []string // tests that compare times, if request.Clocks is set
	probe       []byte   // output of the probe
	passes      []run    // the passes that ran, in order
	number      int      // the index of a pass in request.Passes
}

// pass is one of several runs that share a sandbox and an interpreter that has collected the tests
// once. Each pass runs in a fork of that interpreter, and sees the files that earlier passes left.
type pass struct {
	Only        []string `json:"only"`
	Shuffle     int64    `json:"shuffle,omitempty"`
	MaxFailures int      `json:"max_failures,omitempty"`
	Describe    int      `json:"describe,omitempty"`
	Timeout     float64  `json:"timeout"` // seconds
	CPULimit    float64  `json:"cpu_limit,omitempty"`
	Probe       *probe   `json:"probe,omitempty"`
	// Follows makes a pass depend on the first one: it runs only if the first pass reached its end, and
	// tests failed in it, but no more than its MaxFailures.
	Follows bool `json:"follows,omitempty"`
	// Failing, if not 0, replaces Only by up to this many tests that failed in the first pass.
	Failing int `json:"failing,omitempty"`
}

// setTimeout sets the limits of the tests in seconds and in seconds of CPU time (0 = no limit), which
// apply to each pass if there are passes. It needs to be called after Passes is set.
func (q *request) setTimeout(seconds, cpu float64) {
	if q.Timeout, q.CPULimit = seconds, cpu; len(q.Passes) == 0 {
		return
	}
	q.Budget = 0
	for i := range q.Passes {
		q.Passes[i].Timeout, q.Passes[i].CPULimit = seconds, cpu
		if q.Passes[i].Probe != nil {
			q.Passes[i].Timeout *= probeFactor
			q.Passes[i].CPULimit *= probeFactor
		}
		q.Budget += q.Passes[i].Timeout
	}
	q.Timeout = q.Budget + grace.Seconds()
}

// verdicts returns the run that gives the verdicts: the first pass, or r itself if it has no passes.
func (r run) verdicts() run {
	first := r.pass(0)
	if first == nil {
		return r
	}
	first.Leftovers, first.Log, first.uncollected = r.Leftovers, r.Log, r.uncollected
	return *first
}

// pass returns the result of a pass; nil if it did not run.
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

// passEnd holds the fields of a record that ends a pass.
type passEnd struct {
	Number   int  `json:"n"`
	TimedOut bool `json:"timed_out"`
	Finished bool `json:"finished"` // the pass reached its end
}

// sortRecords moves the contents of the records to the other fields of the run and its passes.
func (r *run) sortRecords() {
	all := r.Records
	r.Records, r.tests = nil, map[string]string{}
	for _, rec := range all {
		switch rec.Kind {
		case "test":
			r.tests[rec.ID] = rec.Status
			if rec.Clock {
				r.clocks = append(r.clocks, rec.ID)
			}
		case "failure":
			rec.Failure.Test = rec.ID
			rec.Failure.Text = rec.Detail
			rec.Failure.mask()
			r.failures = append(r.failures, rec.Failure)
		case "collect":
			r.uncollected = append(r.uncollected, rec.ID)
		case "pass":
			p := run{tests: r.tests, failures: r.failures, finished: rec.Finished, code: rec.Code, number: rec.Number}
			p.TimedOut = rec.TimedOut
			r.passes = append(r.passes, p)
			r.tests, r.failures = map[string]string{}, nil
		case "end":
			r.finished, r.code = true, rec.Code
		}
	}
}
