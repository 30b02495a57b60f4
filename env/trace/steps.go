package trace

import (
	"context"
	"slices"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/verify"
	"github.com/tracesmith/tracesmith/schemas"
)

const (
	// window is the number of events that one run records completely.
	window = 20_000
	// maxRest is the number of calls, returns and exceptions, and of samples, that one run records
	// after the window (Steps.REST in probe_steps.py).
	maxRest = 8_000
	// maxValues is the number of values that a brief recording formats in its window. 20,000 events of
	// most tests need fewer. Formatting a value takes about a microsecond.
	maxValues = 150_000
	// rehearsalSeconds limits the time of the child that runs a test first.
	rehearsalSeconds = 30
)

// event is one step of a traced test.
type event struct {
	kind     string // call, line, return, exception, sample
	n        int    // number in the whole run, from 0
	file     string
	function string // qualified name
	line     int
	depth    int                // frames of the workspace on the stack, including its own
	serial   int                // identifies the frame within the run
	changes  map[string]*string // new values of variables; nil = unbound. A sample has all variables of the frame
	digest   int64              // after the window: a hash of variables of all functions that have returned
}

// place returns the function of an event as functions has it.
func (e event) place() string { return e.file + ":" + e.function }

// function describes the local variables of a function.
type function struct {
	variables map[string]bool
	arguments map[string]bool
	globals   map[string]bool // of the module
}

// steps are events of one test in one run, with data about the whole run.
type steps struct {
	events    []event             // of the window
	rest      []event             // calls, returns, exceptions and samples after it
	functions map[string]function // by "file:function"
	failures  []Failure           // the exceptions of the run, in order
	executed  []string            // functions, "file:qualified name"
	hits      map[Place]int       // how often lines ran before the window, by file and line
	python    string              // version of the interpreter
	count     int                 // events of the whole run
	depth     int                 // rest has the calls up to this depth of the stack,
	stride    int                 // and the samples whose numbers are multiples of this one
	threads   bool                // other threads ran functions of the workspace
	cut       bool                // the probe reached a limit
	ended     bool                // the probe has recorded the end of the test
	rehearsal bool                // recorded by a child that ran the test before
	left      string              // rehearsals: a file that the child has left behind
}

// Place is a line of a function. File is relative to the workspace.
type Place struct {
	File     string `json:"file"`
	Function string `json:"function"` // qualified name
	Line     int    `json:"line"`
}

// Failure is an exception and the frames of the workspace that it passed through, innermost first.
type Failure struct {
	Type   string  `json:"type"`
	Event  int     `json:"event"`
	Places []Place `json:"places"`
	outer  int     // depth of the outermost frame that it reached
}

// StepsProbe returns a probe that records the first window of events, for callers that make the test
// runs themselves.
func StepsProbe() *verify.Probe { return recording{size: window, brief: true}.probe() }

// recording says what a probe records.
type recording struct {
	first    int  // the window begins with this event
	size     int  // largest number of events of the window
	rehearse bool // a child of the interpreter runs the test first, and the probe records both runs
	brief    bool // it formats about maxValues values instead of all
	limit    int  // the number of events after which it stops; 0 = maxEvents
}

func (r recording) probe() *verify.Probe {
	config := map[string]any{"mode": "steps", "first": r.first, "size": r.size}
	if r.rehearse {
		config["rehearse"] = rehearsalSeconds
	}
	if r.brief {
		config["values"] = maxValues
	}
	probe := newProbe(baseSource, config)
	if r.limit > 0 {
		config["events"] = min(r.limit, maxEvents)
	}
	return probe
}

// traceSteps runs one test and returns its steps, and those of its rehearsal if there is a complete one.
func traceSteps(ctx context.Context, r Runner, t schemas.Task, tree env.Tree, patch []byte, test string, how recording,
) (main steps, rehearsal *steps, err error) {
	run, err := runProbe(ctx, r, t, tree, patch, verify.Variant{Only: []string{test}, Probe: how.probe()})
	if err != nil {
		return steps{}, nil, err
	}
	main, rehearsal = readSteps(run.Probe)
	if !main.ended {
		return main, nil, ErrNoTrace
	}
	return main, rehearsal, nil
}

// readSteps reads the output of the probe of a recording. rehearsal is nil if there is no complete one.
func readSteps(raw []byte) (main steps, rehearsal *steps) {
	s := newSteps()
	main = *s
	readRecords(raw, func(r record) {
		if r.kind == "run" {
			role := ""
			s = newSteps()
			r.decode(&s.python, &role)
			s.rehearsal = role == "rehearsal"
		}
		s.read(r)
		switch {
		case !s.ended:
		case s.rehearsal:
			rehearsal = s
		default:
			main = *s
		}
	})
	return main, rehearsal
}

func newSteps() *steps {
	return &steps{functions: map[string]function{}, hits: map[Place]int{}, depth: 1 << 30, stride: 1}
}

func (s *steps) read(r record) {
	switch r.kind {
	case "call", "line", "return", "exception", "sample":
		e := event{kind: r.kind}
		if len(s.events)+len(s.rest) >= window+2*maxRest ||
			!r.decode(&e.n, &e.file, &e.function, &e.line, &e.depth, &e.serial, &e.changes) || e.depth < 1 || e.depth > 1<<16 {
			return
		}
		if len(r.items) > 7 {
			record{items: r.items[7:]}.decode(&e.digest)
		}
		if len(s.events) < window && e.kind != "sample" && (len(s.events) == 0 || e.n == s.events[len(s.events)-1].n+1) {
			s.events = append(s.events, e)
		} else {
			s.rest = append(s.rest, e)
		}
	case "function":
		var name string
		var variables, globals []string
		var arguments int
		if r.decode(&name, &variables, &arguments, &globals) {
			f := function{map[string]bool{}, map[string]bool{}, map[string]bool{}}
			for i, v := range variables {
				f.variables[v], f.arguments[v] = true, i < arguments
			}
			for _, v := range globals {
				f.variables[v], f.globals[v] = true, true
			}
			s.functions[name] = f
		}
	case "hits":
		var list []place
		if r.decode(&list) {
			for _, p := range list {
				s.hits[p.Place] = p.depth
			}
		}
	case "failure":
		var list []failure
		if r.decode(&list) {
			for _, f := range list {
				s.failures = append(s.failures, Failure(f))
			}
		}
	case "end":
		var cut bool
		if r.decode(&s.count, &s.executed, &cut, &s.depth, &s.stride, &s.threads) {
			s.ended, s.cut, s.stride = true, s.cut || cut, max(s.stride, 1)
		}
	case "left":
		r.decode(&s.left)
	case "cut":
		s.cut = true
	}
}

// whole reports whether the window has all events of the run from its beginning on.
func (s *steps) whole() bool { return !s.cut && s.count <= s.end() }

// end returns the number of the first event after the window.
func (s *steps) end() int {
	if len(s.events) == 0 {
		return 0
	}
	return s.events[len(s.events)-1].n + 1
}

// failure is a Failure as the probe writes it.
type failure Failure

// UnmarshalJSON reads [event, number, type, [[file, function, line, depth], ...]].
func (f *failure) UnmarshalJSON(raw []byte) error {
	var places []place
	var number int64
	if err := decodeTuple(raw, &f.Event, &number, &f.Type, &places); err != nil {
		return err
	}
	for _, p := range places {
		f.Places, f.outer = append(f.Places, p.Place), p.depth
	}
	return nil
}

type place struct {
	Place
	depth int
}

// UnmarshalJSON reads [file, function, line, depth].
func (p *place) UnmarshalJSON(raw []byte) error {
	return decodeTuple(raw, &p.File, &p.Function, &p.Line, &p.depth)
}

// testFailure returns the exception that ended the test: the last one that reached the outermost frame.
func (s *steps) testFailure() *Failure {
	for i := len(s.failures) - 1; i >= 0; i-- {
		if s.failures[i].outer == 1 {
			return &s.failures[i]
		}
	}
	return nil
}

// comparableRest returns the events after the window that the other run of the test has recorded as well
// if both do the same.
func (s *steps) comparableRest(other *steps) []event {
	depth, stride := min(s.depth, other.depth), max(s.stride, other.stride)
	return slices.DeleteFunc(slices.Clone(s.rest), func(e event) bool {
		return e.kind == "sample" && e.n%stride != 0 || e.kind != "sample" && e.depth > depth
	})
}
