package trace

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/aymanbagabas/go-udiff/lcs"
)

// side is one of two runs that are compared: 0 is the buggy one, and 1 the fixed one.
type side struct {
	*steps
	lines map[string]lineMap
}

// line returns the line of an event in the tree. For a line that only this version has, it
// returns a negative number, which equals no line of the other version.
func (s side) line(e event) int {
	if m, changed := s.lines[e.file]; changed {
		if old := m.oldLine(e.line); old != 0 {
			return old
		}
		return -e.line
	}
	return e.line
}

// point is a pair of events of both runs at which values of the function's variables differ.
type point struct {
	events  [2]event
	after   [2]event // the line events before them in the same frames; zero = none
	vars    []Difference
	changed bool // a difference is new since the previous pair of events in these frames
	visible int  // number of variables in the buggy frame
}

// flow is a place at which the control flow of two frames begins to differ.
type flow struct {
	event   event
	other   *event // in the fixed run; nil = it has ended
	after   event
	vars    []Difference // at the event before it
	visible int
}

// alignment relates the events of two runs. It compares calls from the outside to the inside: of two
// calls of the same function, it relates the lines and the calls that they have in common. Thus it
// finds later events that correspond to each other after the control flow differed.
type alignment struct {
	sides  [2]side
	mask   map[string]bool // variables to ignore, "file:function variable"
	keys   map[string]rune
	points []point // in order of the buggy run
	flows  []flow
	// stops has the line events of the buggy run that were compared: whether the fixed run has them.
	stops   map[int]bool
	matches map[int]event // the events of the fixed run that correspond to those of the buggy run
}

// align relates the events of two runs whose windows begin at the same point.
func align(buggy, fixed side, mask map[string]bool) *alignment {
	a := &alignment{sides: [2]side{buggy, fixed}, mask: mask, keys: map[string]rune{}, stops: map[int]bool{}, matches: map[int]event{}}
	depth := min(buggy.depth, fixed.depth)
	a.alignFrames(newTree(buggy.steps, depth), newTree(fixed.steps, depth))
	slices.SortStableFunc(a.points, func(p, q point) int { return p.events[0].n - q.events[0].n })
	slices.SortStableFunc(a.flows, func(p, q flow) int { return p.event.n - q.event.n })
	return a
}

// itemKeys returns keys of the items of a frame, which are equal if the items correspond to each other.
func (a *alignment) itemKeys(f *frame, s int) []rune {
	out := make([]rune, len(f.items))
	for i, it := range f.items {
		var key string
		switch {
		case it.child != nil && it.child.before:
			key = "before"
		case it.child != nil:
			key = "child " + it.child.function
		case it.kind == "call":
			key = it.kind
		default:
			key = it.kind + strconv.Itoa(a.sides[s].line(it.event))
		}
		if _, known := a.keys[key]; !known {
			a.keys[key] = rune(len(a.keys))
		}
		out[i] = a.keys[key]
	}
	return out
}

// alignFrames relates the items of two calls of a function.
func (a *alignment) alignFrames(x, y *frame) {
	p := &framePair{alignment: a, frames: [2]*frame{x, y}, values: [2]map[string]string{{}, {}}, dirty: map[string]bool{}, differing: map[string]bool{}}
	kx, ky := a.itemKeys(x, 0), a.itemKeys(y, 1)
	common := 0
	for common < len(kx) && common < len(ky) && kx[common] == ky[common] {
		p.visit(common, common)
		common++
	}
	if common == len(kx) && common == len(ky) {
		return
	}
	p.diverge(common)
	endX, endY := bodyEnd(x), bodyEnd(y)
	i, j, last := common, common, common
	if common < endX && common < endY {
		for _, d := range append(lcs.DiffRunes(kx[common:endX], ky[common:endY]), lcs.Diff{Start: endX - common, End: endX - common}) {
			for i < common+d.Start {
				a.miss(x.items[last:i])
				p.visit(i, j)
				i, j = i+1, j+1
				last = i
			}
			i, j = common+d.End, j+d.ReplEnd-d.ReplStart
		}
	}
	if !y.partial {
		a.miss(x.items[last:])
	}
	if x.closed && y.closed && endX < len(kx) && endY < len(ky) {
		p.visit(endX, endY)
	}
}

// bodyEnd returns the number of items before the return of a frame.
func bodyEnd(f *frame) int {
	if n := len(f.items); n > 0 && f.items[n-1].kind == "return" && f.items[n-1].child == nil {
		return n - 1
	}
	return len(f.items)
}

// miss records that the fixed run does not have items of the buggy run.
func (a *alignment) miss(items []item) {
	for _, it := range items {
		if it.child != nil {
			a.miss(it.child.items)
		} else if it.kind == "line" {
			a.stops[it.n] = false
		}
	}
}

// framePair is the state of comparing two calls of a function.
type framePair struct {
	*alignment
	frames    [2]*frame
	next      [2]int // items whose changes values does not contain yet
	values    [2]map[string]string
	lines     [2]event        // the lines that ran last
	dirty     map[string]bool // variables that have changed since the last comparison
	differing map[string]bool
	vars      []Difference // the differing variables
}

// visit compares two items that correspond to each other. i and j are their indexes.
func (p *framePair) visit(i, j int) {
	x, y := p.frames[0].items[i], p.frames[1].items[j]
	if x.child != nil {
		p.alignFrames(x.child, y.child)
		return
	}
	after := p.lines
	p.advance(0, i)
	p.advance(1, j)
	p.matches[x.n] = y.event
	if x.kind == "line" {
		p.stops[x.n] = true
	}
	if changed := p.compare(x.event, y.event); len(p.vars) > 0 {
		p.points = append(p.points, point{[2]event{x.event, y.event}, after, p.vars, changed, len(p.values[0])})
	}
	for s := range p.values {
		for _, name := range []string{"<return>", "<exit>", "<exception>"} { // values of this event only
			if _, set := p.values[s][name]; set {
				delete(p.values[s], name)
				p.dirty[name] = true
			}
		}
	}
}

// advance applies the changes of a frame's items up to item i.
func (p *framePair) advance(s, i int) {
	for ; p.next[s] <= i; p.next[s]++ {
		it := p.frames[s].items[p.next[s]]
		if it.child != nil {
			continue
		}
		for name, v := range it.changes {
			if isPseudo(name) && p.next[s] < i {
				continue
			}
			if v == nil {
				delete(p.values[s], name)
			} else {
				p.values[s][name] = *v
			}
			p.dirty[name] = true
		}
		if it.kind == "line" {
			p.lines[s] = it.event
		}
	}
}

// compare updates the differing variables. It ignores masked variables, and local variables that only
// one version of the function has. changed is true if a variable that has changed differs now.
func (p *framePair) compare(x, y event) (changed bool) {
	if len(p.dirty) == 0 {
		return false
	}
	before := len(p.differing)
	for name := range p.dirty {
		vx, boundX := p.values[0][name]
		vy, boundY := p.values[1][name]
		ignored := p.mask[x.place()+" "+name] ||
			p.sides[0].functions[x.place()].variables[name] != p.sides[1].functions[y.place()].variables[name]
		if (vx != vy || boundX != boundY) && !ignored {
			p.differing[name], changed = true, true
		} else {
			delete(p.differing, name)
		}
	}
	clear(p.dirty)
	if changed || before != len(p.differing) {
		p.vars = nil
		for _, name := range slices.Sorted(maps.Keys(p.differing)) {
			p.vars = append(p.vars, Difference{name, p.values[0][name], p.values[1][name]})
		}
	}
	return changed
}

// diverge records that the control flow differs from item i on, if both runs have recorded it.
func (p *framePair) diverge(i int) {
	x, y := p.frames[0], p.frames[1]
	if i >= len(x.items) || x.items[i].first().n >= p.sides[0].end() {
		return
	}
	f := flow{event: x.items[i].first(), after: p.lines[0], vars: p.vars, visible: len(p.values[0])}
	switch {
	case i < len(y.items) && y.items[i].first().n < p.sides[1].end():
		other := y.items[i].first()
		f.other = &other
	case y.partial || !p.sides[1].whole():
		return
	}
	p.flows = append(p.flows, f)
}

// maskOf returns the variables that differ between two runs of one version, and the number of the
// first event of the first run at which their control flow differs.
func maskOf(one, other *steps) (mask map[string]bool, stable int) {
	a := align(side{steps: one}, side{steps: other}, nil)
	mask, stable = map[string]bool{}, 1<<62
	for _, p := range a.points {
		for _, v := range p.vars {
			mask[p.events[0].place()+" "+v.Name] = true
		}
	}
	if len(a.flows) > 0 {
		stable = a.flows[0].event.n
	}
	return mask, stable
}

// isPseudo reports whether a name is not that of a variable, but of a return value or exception.
func isPseudo(name string) bool { return strings.HasPrefix(name, "<") }

// firstDivergence returns the earliest difference, or nil.
func (a *alignment) firstDivergence() (d *Divergence, fixed int) {
	if len(a.points) > 0 {
		p := a.points[0]
		e := p.events[0]
		d = &Divergence{Kind: ValueDivergence, Place: Place{e.file, e.function, e.line}, After: p.after[0].line, Event: e.n, Depth: e.depth,
			Vars: p.vars, Visible: p.visible}
		fixed = p.events[1].n
	}
	if len(a.flows) > 0 && (d == nil || a.flows[0].event.n <= d.Event) {
		f := a.flows[0]
		e := f.event
		d = &Divergence{Kind: FlowDivergence, Place: Place{e.file, e.function, e.line}, After: f.after.line, Event: e.n, Depth: e.depth, Visible: f.visible}
		fixed = a.sides[1].count
		if f.other != nil {
			d.Other = &Place{f.other.file, f.other.function, f.other.line}
			fixed = f.other.n
		}
	}
	return d, fixed
}
