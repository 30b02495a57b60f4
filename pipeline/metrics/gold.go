package metrics

import "github.com/tracesmith/tracesmith/schemas"

// goldSet holds the files, functions and lines of base that the reference fix changes. Tests do not
// count.
type goldSet struct {
	files     map[string]*goldFile
	functions map[string]bool // as path::name; nil if unknown
	nLines    int
}

type goldFile struct {
	lines     map[int]bool
	functions map[int]bool // by index of Function
}

func newGoldSet(gold Patch, functions map[string][]Function) *goldSet {
	g := &goldSet{files: map[string]*goldFile{}, functions: map[string]bool{}}
	for name := range gold.created { // counts as a file only
		if !schemas.IsTest(name) {
			g.files[name] = &goldFile{}
		}
	}
	for _, name := range gold.Existing {
		if schemas.IsTest(name) {
			continue
		}
		f := &goldFile{lines: map[int]bool{}, functions: map[int]bool{}}
		g.files[name] = f
		known := functions[name]
		for _, c := range gold.changes[name] {
			for _, n := range c.lines() {
				f.lines[n] = true
			}
			for _, at := range c.functions(known) {
				f.functions[at] = true
				g.functions[name+"::"+known[at].Name] = true
			}
		}
		g.nLines += len(f.lines)
	}
	if len(g.files) == 0 {
		return nil
	}
	if functions == nil {
		g.functions = nil
	}
	return g
}

// functions returns the indexes of the functions that a change changes: the innermost functions of
// the removed lines, or the function around an insertion. A line that is inserted below a function
// belongs to it if it is indented more than its def.
func (c change) functions(known []Function) []int {
	var out []int
	for n := c.first; n < c.first+c.removed; n++ {
		if at := functionOf(known, n); at >= 0 {
			out = append(out, at)
		}
	}
	if c.removed > 0 {
		return out
	}
	before, after := functionOf(known, c.first-1), functionOf(known, c.first)
	switch {
	case before >= 0 && (c.indent < 0 || c.indent > known[before].start):
		return []int{before}
	case after >= 0 && known[after].First < c.first:
		return []int{after}
	}
	return nil
}

// near reports whether a line is at most one line from a changed line of the file.
func (f *goldFile) near(n int) bool { return f.lines[n-1] || f.lines[n] || f.lines[n+1] }

// distance returns the distance of a line from the nearest changed line for which ok is true, or -1.
func (f *goldFile) distance(n int, ok func(int) bool) int {
	best := -1
	for l := range f.lines {
		if d := max(l-n, n-l); ok(l) && (best < 0 || d < best) {
			best = d
		}
	}
	return best
}
