package trace

import (
	"context"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/verify"
	"github.com/tracesmith/tracesmith/schemas"
)

// window is how many events of a run are read at once.
const window = 20_000

// event is one step of a traced test.
type event struct {
	kind     string // call, line, return, exception
	n        int    // number in the whole run, from 0
	file     string
	function string // qualified name
	line     int
	depth    int                // frames of the workspace on the stack, its own included
	serial   int                // of the frame
	changes  map[string]*string // new values of variables; nil: unbound
}

// steps is a window of the events of one test in one run.
type steps struct {
	events    []event
	functions map[string]map[string]bool // "file:function" -> its variables
	failures  []Failure
	executed  []string
	count     int // events of the whole run
	cut       bool
	ended     bool
}

// Place is a line of a function. File is relative to the workspace.
type Place struct {
	File     string `json:"file"`
	Function string `json:"function"` // qualified name
	Line     int    `json:"line"`
}

// Failure is an exception and the frames of the workspace that it passed, innermost first.
type Failure struct {
	Type   string  `json:"type"`
	Event  int     `json:"event"`
	Places []Place `json:"places"`
	outer  int     // depth of the outermost frame it reached
}

// StepsProbe is the probe of the first runs of Compare.
func StepsProbe() *verify.Probe { return stepsProbe(0) }

func stepsProbe(first int) *verify.Probe {
	return probe(map[string]any{"mode": "steps", "first": first, "size": window})
}

// follow runs one test and reads a window of its events.
func follow(ctx context.Context, r Runner, t schemas.Task, tree env.Tree, patch []byte, test string, first int) (steps, error) {
	run, err := watch(ctx, r, t, tree, patch, verify.Variant{Only: []string{test}, Probe: stepsProbe(first)})
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
	records(raw, func(r record) {
		switch r.kind {
		case "call", "line", "return", "exception":
			e := event{kind: r.kind}
			if len(s.events) < window && r.into(&e.n, &e.file, &e.function, &e.line, &e.depth, &e.serial, &e.changes) {
				s.events = append(s.events, e)
			}
		case "function":
			var name string
			var variables []string
			if r.into(&name, &variables) {
				s.functions[name] = map[string]bool{}
				for _, v := range variables {
					s.functions[name][v] = true
				}
			}
		case "failure":
			var list []failure
			if r.into(&list) {
				for _, f := range list {
					s.failures = append(s.failures, Failure(f))
				}
			}
		case "end":
			var cut bool
			if r.into(&s.count, &s.executed, &cut) {
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
	if err := tuple(raw, &f.Event, &number, &f.Type, &places); err != nil {
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
	return tuple(raw, &p.File, &p.Function, &p.Line, &p.depth)
}

// failed is the exception that ended the test: the last one that reached the outermost frame.
func (s steps) failed() *Failure {
	for i := len(s.failures) - 1; i >= 0; i-- {
		if s.failures[i].outer == 1 {
			return &s.failures[i]
		}
	}
	return nil
}
