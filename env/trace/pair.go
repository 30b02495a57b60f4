package trace

import (
	"context"
	"maps"
	"slices"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
)

// maxWindows is the number of windows that a comparison looks at before it gives up.
const maxWindows = 8

// slack is the number of events by which the fixed run may be longer than twice the buggy one.
const slack = 2_000

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
//
// If the runs do not differ in the first window of events, Compare looks at the calls, returns and
// samples of lines that were recorded after it. It repeats the runs with a window that begins
// at the last of them at which the runs agree.
func Compare(ctx context.Context, r Runner, t schemas.Task, tree env.Tree, buggy, fixed []byte, test string) (Pair, error) {
	c := comparison{runner: r, task: t, tree: tree, patches: [2][]byte{buggy, fixed}, test: test}
	if err := c.run(ctx); err != nil {
		return Pair{Test: test}, err
	}
	return c.pair(), nil
}

// comparison compares the runs of one test in two versions.
type comparison struct {
	runner   Runner
	task     schemas.Task
	tree     env.Tree
	patches  [2][]byte
	test     string
	rehearse bool // each version is run twice in one sandbox; otherwise, recordings are brief, and the fixed version is run in two

	sandboxes int    // test runs so far
	first     int    // number of the first event of the window
	size      int    // largest number of events of the window
	lengths   [2]int // events of the whole runs
	sides     [2]side
	mask      map[string]bool
	stable    [2]int // by version: the first event at which two runs of it differ in control flow
	digests   bool   // nextWindow compares digests, which do not differ between two runs of one version
	byDigest  bool   // only a digest differed where the window begins
	alignment *alignment
}

// run traces both versions with windows at which they may begin to differ, until they do.
func (c *comparison) run(ctx context.Context) error {
	var lines [2]map[string]lineMap
	for i, patch := range c.patches {
		var err error
		if lines[i], err = parseLineMaps(patch); err != nil {
			return err
		}
	}
	c.digests, c.size = true, window
	for range maxWindows {
		c.mask = map[string]bool{}
		for i := range c.sides {
			recorded, err := c.record(ctx, i)
			if err != nil {
				return err
			}
			c.sides[i] = side{recorded, lines[i]}
			if c.first == 0 {
				c.lengths[i] = recorded.count
			}
		}
		c.alignment = align(c.sides[0], c.sides[1], c.mask)
		if d, _ := c.alignment.firstDivergence(); d != nil && d.Event < c.sides[0].end() || c.unstableWithin() {
			return nil
		}
		c.digests = c.digests && !c.byDigest
		next, end, differs := c.nextWindow()
		if !differs || next <= c.first {
			return nil
		}
		c.first = next
		if !c.rehearse {
			c.size = min(window, end-next+slack)
		}
	}
	return nil
}

// record traces one version twice. It adds the variables that differ between the two traces to the mask.
func (c *comparison) record(ctx context.Context, version int) (*steps, error) {
	run := func(rehearse bool) (*steps, *steps, error) {
		c.sandboxes++
		how := recording{first: c.first, size: c.size, rehearse: rehearse, brief: !c.rehearse}
		switch {
		case version == 0:
		case c.rehearse: // what follows much later than the end of the buggy run explains nothing
			how.limit = 2*c.sides[0].count + slack
		case c.first > 0:
			how.limit = c.first + c.size + slack
		}
		main, rehearsal, err := traceSteps(ctx, c.runner, c.task, c.tree, c.patches[version], c.test, how)
		return &main, rehearsal, err
	}
	main, other, err := run(c.rehearse)
	if err == nil && c.rehearse {
		err = checkPython(main.python)
	}
	if err == nil && c.rehearse {
		var mask map[string]bool
		if other != nil && other.left == "" {
			if mask, c.stable[version] = maskOf(main, other); c.stable[version] >= main.count {
				maps.Copy(c.mask, mask)
				c.digests = c.digests && repeatsDigests(main, other)
				return main, nil
			}
		}
		main, _, err = run(false) // what the first run has left behind may have changed the second one
	}
	if err == nil && other == nil && (c.rehearse || version == 1) {
		other, _, err = run(false)
	}
	if err != nil {
		return nil, err
	}
	c.stable[version] = main.count
	if other != nil {
		var mask map[string]bool
		mask, c.stable[version] = maskOf(main, other)
		maps.Copy(c.mask, mask)
		c.digests = c.digests && repeatsDigests(main, other)
	}
	return main, nil
}

// unstableWithin reports whether two runs of one version differ in control flow within the window.
func (c *comparison) unstableWithin() bool {
	return c.stable[0] < c.sides[0].end() || c.stable[1] < c.sides[1].end()
}

// repeatsDigests reports whether two runs of one version have the same digests.
func repeatsDigests(one, other *steps) bool {
	a, b := one.comparableRest(other), other.comparableRest(one)
	return slices.EqualFunc(a, b, func(x, y event) bool { return x.digest == y.digest })
}

// nextWindow looks for the first difference after the window. It returns the number of the event after the
// last recorded event before it, and that of the event at which the runs differ.
func (c *comparison) nextWindow() (next, end int, differs bool) {
	b, f := c.sides[0].comparableRest(c.sides[1].steps), c.sides[1].comparableRest(c.sides[0].steps)
	next, c.byDigest = min(c.sides[0].end(), c.sides[1].end()), false
	both := min(len(b), len(f))
	for i := range both {
		other := c.differ(b[i], f[i])
		if c.byDigest = !other && c.digests && b[i].digest != f[i].digest; other || c.byDigest {
			return next, max(b[i].n, f[i].n), true
		}
		next = b[i].n + 1
	}
	if rest := slices.Concat(b[both:], f[both:]); len(rest) > 0 {
		return next, rest[0].n, true
	}
	return next, min(c.lengths[0], c.lengths[1]), c.lengths[0] != c.lengths[1]
}

// differ reports whether two recorded events differ that have the same position in their runs.
func (c *comparison) differ(x, y event) bool {
	if x.kind != y.kind || x.n != y.n || x.place() != y.place() || x.depth != y.depth || c.sides[0].line(x) != c.sides[1].line(y) {
		return true
	}
	fx, fy := c.sides[0].functions[x.place()].variables, c.sides[1].functions[y.place()].variables
	all := maps.Clone(x.changes)
	maps.Copy(all, y.changes)
	for name := range all {
		vx, boundX := x.changes[name]
		vy, boundY := y.changes[name]
		if !c.mask[x.place()+" "+name] && fx[name] == fy[name] && (schemas.Value(vx) != schemas.Value(vy) || boundX != boundY) {
			return true
		}
	}
	return false
}

// pair returns the result of the comparison.
func (c *comparison) pair() Pair {
	b := c.sides[0]
	p := Pair{Test: c.test, Executed: b.executed, Length: b.count, FixedLength: c.lengths[1], Failure: b.testFailure(),
		Masked: slices.Sorted(maps.Keys(c.mask))}
	d, fixed := c.alignment.firstDivergence()
	switch {
	case d != nil && d.Event < c.stable[0] && fixed < c.stable[1]:
		p.FirstDivergence = d
	case d != nil || c.unstableWithin():
		p.Unstable = true
	}
	p.Cut = b.cut || p.FirstDivergence == nil && !p.Unstable && b.count > b.end()
	p.measureDistance(b.steps)
	return p
}

// measureDistance sets EventDistance and FrameDistance.
func (p *Pair) measureDistance(b *steps) {
	if p.FirstDivergence == nil || p.Failure == nil || p.Failure.Event < p.FirstDivergence.Event {
		return
	}
	p.EventDistance = p.Failure.Event - p.FirstDivergence.Event
	from, to, lowest := p.FirstDivergence.Depth, p.FirstDivergence.Depth, p.FirstDivergence.Depth
	for _, events := range [][]event{b.events, b.rest} {
		for _, e := range events {
			if e.kind != "sample" && e.n >= p.FirstDivergence.Event && e.n <= p.Failure.Event {
				to, lowest = e.depth, min(lowest, e.depth)
			}
		}
	}
	p.FrameDistance = from - lowest + to - lowest
}
