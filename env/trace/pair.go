package trace

import (
	"context"
	"maps"
	"slices"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
)

// maxWindows is how many windows Compare reads until the runs differ.
const maxWindows = 10

// Kinds of Divergence.
const (
	ValueDivergence = "value" // the same line, other values
	FlowDivergence  = "flow"  // another line, call, return or exception
)

// Divergence is the first point at which two runs differ.
type Divergence struct {
	Kind string `json:"kind"`
	// Place is where the buggy run is: at this call, return or exception, or about to run
	// this line. Lines are lines of the buggy version.
	Place
	After   int          `json:"after,omitempty"` // the line of the same frame that ran just before
	Event   int          `json:"event"`           // number in the buggy run
	Depth   int          `json:"depth"`
	Vars    []Difference `json:"vars,omitempty"`  // of a value divergence, by name
	Visible int          `json:"visible"`         // variables of the frame
	Other   *Place       `json:"other,omitempty"` // of a flow divergence: where the fixed run is, in its own lines
}

// Difference is a variable with different values in the two runs; "" is unbound. Besides local
// variables there are self.NAME, <return> and <exception>.
type Difference struct {
	Name  string `json:"name"`
	Buggy string `json:"buggy"`
	Fixed string `json:"fixed"` // privileged: never shown to a model
}

// Pair compares one test's run in two versions of a program.
type Pair struct {
	Test    string      `json:"test"`
	D0      *Divergence `json:"d0,omitempty"`      // nil: no difference was found
	Failure *Failure    `json:"failure,omitempty"` // of the buggy run
	// Events and Frames are the distance of the symptom: the number of events in the buggy
	// run from D0 to the failure, and of calls and returns between their frames.
	Events      int      `json:"events"`
	Frames      int      `json:"frames"`
	Executed    []string `json:"executed"` // functions of the buggy run, "file:qualified name"
	Length      int      `json:"length"`   // events of the buggy run
	FixedLength int      `json:"fixed_length"`
	Masked      []string `json:"masked,omitempty"`   // "file:function variable" that differ between two runs of one version
	Unstable    bool     `json:"unstable,omitempty"` // two runs of one version took different ways: compared up to there
	Cut         bool     `json:"cut,omitempty"`      // there was more than the bounds allow
}

// Compare runs one test twice in each of two versions of a tree, each given by a patch (nil:
// the tree itself), and finds where they begin to differ. It compares lines as lines of the
// tree, and ignores variables that differ between two runs of the same version.
func Compare(ctx context.Context, r Runner, t schemas.Task, tree env.Tree, buggy, fixed []byte, test string) (Pair, error) {
	p := Pair{Test: test}
	var sides [2]side
	for i, patch := range [][]byte{buggy, fixed} {
		m, err := lineMaps(patch)
		if err != nil {
			return p, err
		}
		sides[i] = side{lines: m, frames: map[int]map[string]string{}, last: map[int]int{}}
	}
	for page := range maxWindows {
		for i, patch := range [][]byte{buggy, fixed} {
			var runs [2]steps
			for k := range runs {
				var err error
				if runs[k], err = follow(ctx, r, t, tree, patch, test, page*window); err != nil {
					return p, err
				}
			}
			sides[i].steps = runs[0]
			sides[i].mask, sides[i].stable = noise(runs[0], runs[1])
		}
		p.compare(&sides[0], &sides[1])
		if p.D0 != nil || p.Unstable || sides[0].count <= (page+1)*window {
			break
		}
		p.Cut = page == maxWindows-1
	}
	b := sides[0].steps
	p.Executed, p.Length, p.FixedLength, p.Failure = b.executed, b.count, sides[1].count, b.failed()
	p.Cut = p.Cut || b.cut
	p.distance(b)
	return p, nil
}

// side is one version while it is compared.
type side struct {
	steps
	lines  map[string]lineMap
	frames map[int]map[string]string // values by frame, as of the event looked at
	last   map[int]int               // line that ran last, by frame
	mask   map[string]bool
	stable int // events that two runs agree on
}

// noise compares two runs of one version: which variables differ, and how many
// events they agree on.
func noise(a, b steps) (mask map[string]bool, stable int) {
	mask = map[string]bool{}
	for stable < len(a.events) && stable < len(b.events) {
		x, y := a.events[stable], b.events[stable]
		if x.kind != y.kind || x.file != y.file || x.function != y.function || x.line != y.line || x.depth != y.depth {
			return mask, stable
		}
		for _, name := range names(x.changes, y.changes) {
			if schemas.Value(x.changes[name]) != schemas.Value(y.changes[name]) {
				mask[x.file+":"+x.function+" "+name] = true
			}
		}
		stable++
	}
	return mask, stable
}

func names(a, b map[string]*string) []string {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]*string{}
	}
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

// compare looks for the first difference in a window of both runs.
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
			p.diverges(FlowDivergence, b, x)
			return
		}
		y := f.events[i]
		if x.kind != y.kind || x.file != y.file || x.function != y.function || b.line(x) != f.line(y) || x.depth != y.depth {
			p.diverges(FlowDivergence, b, x)
			p.D0.Other = &Place{y.file, y.function, y.line}
			return
		}
		b.apply(x)
		f.apply(y)
		if vars := differences(b, f, x, y); len(vars) > 0 {
			p.diverges(ValueDivergence, b, x)
			p.D0.Vars, p.D0.Visible = vars, len(b.frames[x.serial])
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

// line is the line of an event in the tree. For a line that only this version has, it is a
// number that no line of the other version has.
func (s *side) line(e event) int {
	if m, changed := s.lines[e.file]; changed {
		if old := m.old(e.line); old != 0 {
			return old
		}
		return -e.line
	}
	return e.line
}

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

// differences lists the variables that an event has changed and that differ. It ignores a local
// variable that one version does not have at all.
func differences(b, f *side, x, y event) []Difference {
	var out []Difference
	key := x.file + ":" + x.function
	for _, name := range names(x.changes, y.changes) {
		vb, inB := b.frames[x.serial][name]
		vf, inF := f.frames[y.serial][name]
		local := b.functions[key][name] || f.functions[key][name]
		if b.mask[key+" "+name] || local && !(b.functions[key][name] && f.functions[key][name]) {
			continue
		}
		if vb != vf || inB != inF {
			out = append(out, Difference{name, vb, vf})
		}
	}
	return out
}

func (p *Pair) diverges(kind string, b *side, e event) {
	p.D0 = &Divergence{Kind: kind, Place: Place{e.file, e.function, e.line}, After: b.last[e.serial], Event: e.n, Depth: e.depth,
		Visible: len(b.frames[e.serial])}
}

// distance measures the distance from D0 to the failure.
func (p *Pair) distance(b steps) {
	if p.D0 == nil || p.Failure == nil || p.Failure.Event < p.D0.Event {
		return
	}
	p.Events = p.Failure.Event - p.D0.Event
	from, to, least := p.D0.Depth, p.D0.Depth, p.D0.Depth
	for _, e := range b.events {
		if e.n >= p.D0.Event && e.n <= p.Failure.Event {
			to, least = e.depth, min(least, e.depth)
		}
	}
	p.Frames = from - least + to - least
}
