package trace

import (
	"context"
	"maps"
	"slices"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
)

// maxWindows is the number of windows of events after which Compare stops if the runs do not differ.
const maxWindows = 10

// Kinds of Divergence.
const (
	ValueDivergence = "value" // the runs are at the same line, but a variable differs
	FlowDivergence  = "flow"  // the runs are at different lines, calls, returns or exceptions
)

// Divergence is the first point at which two runs differ.
type Divergence struct {
	Kind string `json:"kind"`
	// Place is the position of the buggy run, in lines of the buggy version: a call, a
	// return or an exception at this line, or the line that runs next.
	Place
	After   int          `json:"after,omitempty"` // the line that the same frame ran last; 0 = none
	Event   int          `json:"event"`           // number of the event in the buggy run
	Depth   int          `json:"depth"`           // stack frames of the program, including this one
	Vars    []Difference `json:"vars,omitempty"`  // value divergences only: the differing variables, by name
	Visible int          `json:"visible"`         // number of variables in the frame
	Other   *Place       `json:"other,omitempty"` // flow divergences only: position of the fixed run, in its lines
}

// Difference is a variable whose value differs between the two runs. The value is "" if the
// variable is unbound. A name is that of a local variable, self.NAME, <return> or <exception>.
type Difference struct {
	Name  string `json:"name"`
	Buggy string `json:"buggy"`
	Fixed string `json:"fixed"` // privileged: never shown to a model
}

// Pair is the comparison of one test's runs in a buggy and a fixed version of a program.
type Pair struct {
	Test            string      `json:"test"`
	FirstDivergence *Divergence `json:"d0,omitempty"`      // the first divergence; nil if Compare found none
	Failure         *Failure    `json:"failure,omitempty"` // of the buggy run
	// EventDistance and FrameDistance measure how far the failure is from FirstDivergence in the
	// buggy run: the number of events between them, and the number of calls and returns that lead
	// from the frame of FirstDivergence to the frame of the failure.
	EventDistance int      `json:"events"`
	FrameDistance int      `json:"frames"`
	Executed      []string `json:"executed"` // functions of the buggy run, "file:qualified name"
	Length        int      `json:"length"`   // number of events of the buggy run
	FixedLength   int      `json:"fixed_length"`
	Masked        []string `json:"masked,omitempty"`   // ignored variables, "file:function variable"
	Unstable      bool     `json:"unstable,omitempty"` // runs of one version differ in control flow; compared up to there
	Cut           bool     `json:"cut,omitempty"`      // a limit was reached before the end of the runs
}

// Compare runs one test in two versions of a tree and finds where the runs begin to differ.
// Each version is given as a patch of tree, nil for tree itself. Compare runs the fixed version
// twice and ignores variables that differ between these runs. One run of the buggy version is
// enough, because a difference between two of its runs would be an effect of the bug. Compare maps the
// lines of both versions to lines of tree.
func Compare(ctx context.Context, r Runner, t schemas.Task, tree env.Tree, buggy, fixed []byte, test string) (Pair, error) {
	p := Pair{Test: test}
	var sides [2]side
	for i, patch := range [][]byte{buggy, fixed} {
		m, err := parseLineMaps(patch)
		if err != nil {
			return p, err
		}
		sides[i] = side{lines: m, frames: map[int]map[string]string{}, last: map[int]int{}}
	}
	for n := range maxWindows {
		for i, patch := range [][]byte{buggy, fixed} {
			runs := make([]steps, 1+i) // one of the buggy version, two of the fixed one
			for k := range runs {
				var err error
				if runs[k], err = traceSteps(ctx, r, t, tree, patch, test, n*window); err != nil {
					return p, err
				}
			}
			sides[i].steps = runs[0]
			sides[i].mask, sides[i].stable = compareRuns(runs[0], runs[i])
		}
		p.compare(&sides[0], &sides[1])
		if p.FirstDivergence != nil || p.Unstable || sides[0].count <= (n+1)*window {
			break
		}
		p.Cut = n == maxWindows-1
	}
	b := sides[0].steps
	p.Executed, p.Length, p.FixedLength, p.Failure = b.executed, b.count, sides[1].count, b.testFailure()
	p.Cut = p.Cut || b.cut
	p.measureDistance(b)
	return p, nil
}

// side is the state of one version during a comparison. A frame is identified by its serial
// number.
type side struct {
	steps
	lines  map[string]lineMap
	frames map[int]map[string]string // by frame: the values of variables after the current event
	last   map[int]int               // by frame: the line that ran last
	mask   map[string]bool           // variables to ignore
	stable int                       // number of events on which two runs agree
}

// compareRuns compares two runs of one version. mask contains the variables that differ,
// and stable is the number of events on which the runs agree.
func compareRuns(a, b steps) (mask map[string]bool, stable int) {
	mask = map[string]bool{}
	for stable < len(a.events) && stable < len(b.events) {
		x, y := a.events[stable], b.events[stable]
		if x.kind != y.kind || x.file != y.file || x.function != y.function || x.line != y.line || x.depth != y.depth {
			return mask, stable
		}
		for _, name := range changedNames(x.changes, y.changes) {
			if schemas.Value(x.changes[name]) != schemas.Value(y.changes[name]) {
				mask[x.file+":"+x.function+" "+name] = true
			}
		}
		stable++
	}
	return mask, stable
}

// changedNames returns the names of the variables that two events change.
func changedNames(a, b map[string]*string) []string {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]*string{}
	}
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

// compare looks for the first difference within a window of both runs.
func (p *Pair) compare(b, f *side) {
	for name := range f.mask {
		b.mask[name] = true
	}
	p.Masked = slices.Sorted(maps.Keys(b.mask))
	for i := range max(len(b.events), len(f.events)) {
		if i >= len(b.events) {
			return
		}
		if i >= b.stable && b.stable < len(b.events) || i >= f.stable && f.stable < len(f.events) {
			p.Unstable = true
			return
		}
		x := b.events[i]
		if i >= len(f.events) {
			p.setDivergence(FlowDivergence, b, x)
			return
		}
		y := f.events[i]
		if x.kind != y.kind || x.file != y.file || x.function != y.function || b.line(x) != f.line(y) || x.depth != y.depth {
			p.setDivergence(FlowDivergence, b, x)
			p.FirstDivergence.Other = &Place{y.file, y.function, y.line}
			return
		}
		b.apply(x)
		f.apply(y)
		if vars := differences(b, f, x, y); len(vars) > 0 {
			p.setDivergence(ValueDivergence, b, x)
			p.FirstDivergence.Vars, p.FirstDivergence.Visible = vars, len(b.frames[x.serial])
			return
		}
		if x.kind == "line" {
			b.last[x.serial] = x.line
		}
		if x.kind == "return" {
			delete(b.frames, x.serial)
			delete(f.frames, y.serial)
			delete(b.last, x.serial)
		}
	}
}

// line returns the line of an event in the tree. For a line that only this version has, it
// returns a negative number, which equals no line of the other version.
func (s *side) line(e event) int {
	if m, changed := s.lines[e.file]; changed {
		if old := m.oldLine(e.line); old != 0 {
			return old
		}
		return -e.line
	}
	return e.line
}

// apply updates the values of the event's frame.
func (s *side) apply(e event) {
	values := s.frames[e.serial]
	if values == nil {
		values = map[string]string{}
		s.frames[e.serial] = values
	}
	for name, v := range e.changes {
		if v == nil {
			delete(values, name)
		} else {
			values[name] = *v
		}
	}
}

// differences returns the differing variables among those that the events x and y change. It
// ignores masked variables, and local variables that only one version of the function has.
func differences(b, f *side, x, y event) []Difference {
	var out []Difference
	function := x.file + ":" + x.function
	for _, name := range changedNames(x.changes, y.changes) {
		vb, boundB := b.frames[x.serial][name]
		vf, boundF := f.frames[y.serial][name]
		inBuggy, inFixed := b.functions[function][name], f.functions[function][name] // as a local variable
		if b.mask[function+" "+name] || inBuggy != inFixed {
			continue
		}
		if vb != vf || boundB != boundF {
			out = append(out, Difference{name, vb, vf})
		}
	}
	return out
}

func (p *Pair) setDivergence(kind string, b *side, e event) {
	p.FirstDivergence = &Divergence{Kind: kind, Place: Place{e.file, e.function, e.line}, After: b.last[e.serial], Event: e.n, Depth: e.depth,
		Visible: len(b.frames[e.serial])}
}

// measureDistance sets EventDistance and FrameDistance.
func (p *Pair) measureDistance(b steps) {
	if p.FirstDivergence == nil || p.Failure == nil || p.Failure.Event < p.FirstDivergence.Event {
		return
	}
	p.EventDistance = p.Failure.Event - p.FirstDivergence.Event
	from, to, lowest := p.FirstDivergence.Depth, p.FirstDivergence.Depth, p.FirstDivergence.Depth
	for _, e := range b.events {
		if e.n >= p.FirstDivergence.Event && e.n <= p.Failure.Event {
			to, lowest = e.depth, min(lowest, e.depth)
		}
	}
	p.FrameDistance = from - lowest + to - lowest
}
