package trace

import (
	"context"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/verify"
	"github.com/tracesmith/tracesmith/schemas"
)

// window is the number of events that one run records.
const window = 20_000

// event is one step of a traced test.
type event struct {
	kind     string // call, line, return, exception
	n        int    // number in the whole run, from 0
	file     string
	function string // qualified name
	line     int
	depth    int                // frames of the workspace on the stack, including its own
	serial   int                // identifies the frame within the run
	changes  map[string]*string // new values of variables; nil = unbound
}

// steps is a window of the events of one test in one run, with data about the whole run.
type steps struct {
	events    []event
	functions map[string]map[string]bool // "file:function" -> its local variables
	failures  []Failure                  // the exceptions of the run, in order
	executed  []string                   // functions, "file:qualified name"
	count     int                        // events of the whole run
	cut       bool                       // the probe reached a limit
	ended     bool                       // the probe has recorded the end of the test
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
func StepsProbe() *verify.Probe { return stepsProbe(0) }

func stepsProbe(first int) *verify.Probe {
	return newProbe(map[string]any{"mode": "steps", "first": first, "size": window})
}

// traceSteps runs one test and returns the window of its events that begins with event number first.
func traceSteps(ctx context.Context, r Runner, t schemas.Task, tree env.Tree, patch []byte, test string, first int) (steps, error) {
	run, err := runProbe(ctx, r, t, tree, patch, verify.Variant{Only: []string{test}, Probe: stepsProbe(first)})
	if err != nil {
		return steps{}, err
	}
	s := readSteps(run.Probe)
	if !s.ended {
		return s, ErrNoTrace
	}
	return s, nil
}

func readSteps(raw []byte) steps {
	s := steps{functions: map[string]map[string]bool{}}
	readRecords(raw, func(r record) {
		switch r.kind {
		case "call", "line", "return", "exception":
			e := event{kind: r.kind}
			if len(s.events) < window && r.decode(&e.n, &e.file, &e.function, &e.line, &e.depth, &e.serial, &e.changes) {
				s.events = append(s.events, e)
			}
		case "function":
			var name string
			var variables []string
			if r.decode(&name, &variables) {
				s.functions[name] = map[string]bool{}
				for _, v := range variables {
					s.functions[name][v] = true
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
			if r.decode(&s.count, &s.executed, &cut) {
				s.ended, s.cut = true, s.cut || cut
			}
		case "cut":
			s.cut = true
		}
	})
	return s
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
func (s steps) testFailure() *Failure {
	for i := len(s.failures) - 1; i >= 0; i-- {
		if s.failures[i].outer == 1 {
			return &s.failures[i]
		}
	}
	return nil
}
