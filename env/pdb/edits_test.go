package pdb

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
)

// editModel is a simple model of breakpoints in an edited file. All lines of the file differ, and
// each breakpoint belongs to the text of its line.
type editModel struct {
	lines []string
	pins  map[int]string // text of the line by number of the breakpoint
	next  int
}

func (p *editModel) newLines(n int) []string {
	out := make([]string, n)
	for i := range out {
		p.next++
		out[i] = fmt.Sprintf("line %d", p.next)
	}
	return out
}

func (p *editModel) edit(e env.Edit) {
	if e.Whole {
		p.lines = p.newLines(e.Added)
		return
	}
	p.lines = slices.Replace(p.lines, e.First-1, e.First-1+e.Removed, p.newLines(e.Added)...)
}

// want returns the line numbers of the breakpoints. It deletes breakpoints whose line no longer
// exists.
func (p *editModel) want() map[int]int {
	out := map[int]int{}
	for number, text := range p.pins {
		if at := slices.Index(p.lines, text); at >= 0 {
			out[number] = at + 1
		} else {
			delete(p.pins, number)
		}
	}
	return out
}

// makeEdit returns an edit of a file with the given number of lines. The bytes can describe any edit.
func makeEdit(lines int, where, removed, added byte) env.Edit {
	e := env.Edit{File: "a.py", First: 1 + int(where)%(lines+1), Added: int(added) % 12}
	e.Removed = min(int(removed)%12, lines+1-e.First)
	if where == 255 {
		e = env.Edit{File: "a.py", Whole: true, Added: e.Added}
	}
	return e
}

// checkEdits runs a script of breakpoints and edits, four bytes each, and compares the registry with
// the model.
func checkEdits(t *testing.T, script []byte) {
	t.Helper()
	d, p := New(Config{Workdir: workdir, Entrypoint: "python3 a.py"}), &editModel{pins: map[int]string{}}
	p.lines = p.newLines(40)
	d.d.breakpoints.set(schemas.Breakpoint{File: "b.py", Line: 7, Enabled: true})
	for step := 0; len(script) >= 4; step, script = step+1, script[4:] {
		before := slices.Sorted(maps.Keys(p.pins))
		if line := int(script[1]); script[0]%3 == 0 && line < len(p.lines) {
			d.d.breakpoints.set(schemas.Breakpoint{File: "a.py", Line: line + 1, Enabled: true, Condition: p.lines[line]})
			if !slices.Contains(slices.Collect(maps.Values(p.pins)), p.lines[line]) {
				p.pins[d.d.breakpoints.last] = p.lines[line]
			}
			continue
		}
		e := makeEdit(len(p.lines), script[1], script[2], script[3])
		d.d.breakpoints.notes = nil
		d.Edited(e)
		p.edit(e)
		got, want := map[int]int{}, p.want()
		for _, point := range d.d.breakpoints.points {
			if point.File == "b.py" && point.Line == 7 {
				continue
			}
			got[point.number] = point.Line
			if point.File != "a.py" || point.Condition != p.pins[point.number] {
				t.Errorf("step %d: %+v", step, point)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("step %d, %+v (-want +got):\n%s", step, e, diff)
		}
		removed := slices.DeleteFunc(before, func(n int) bool { return p.pins[n] != "" })
		if len(d.d.breakpoints.notes) != len(removed) {
			t.Fatalf("step %d, %+v: notes %q, want one for each of %v", step, e, d.d.breakpoints.notes, removed)
		}
		for i, n := range removed {
			if !strings.HasPrefix(d.d.breakpoints.notes[i], fmt.Sprintf("Breakpoint %d at a.py:", n)) {
				t.Errorf("step %d: note %q, want one of breakpoint %d", step, d.d.breakpoints.notes[i], n)
			}
		}
	}
}

// After any edits, the text of a breakpoint's line is the same. If the line is removed, so is the
// breakpoint, with a note.
func TestEditsAgainstAModel(t *testing.T) {
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 1))
		script := make([]byte, 4*(1+random.IntN(40)))
		for i := range script {
			script[i] = byte(random.IntN(256))
		}
		if checkEdits(t, script); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func FuzzEdits(f *testing.F) {
	f.Add([]byte{0, 29, 0, 0, 0, 39, 0, 0, 1, 0, 0, 10, 1, 0, 10, 0}) // shifts that equal the distance
	f.Add([]byte{0, 9, 0, 0, 0, 10, 0, 0, 1, 9, 1, 1, 1, 255, 0, 3, 0, 1, 0, 0, 2, 0, 0, 11})
	f.Fuzz(checkEdits)
}
