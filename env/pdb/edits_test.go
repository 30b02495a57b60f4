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

// paper is the model: a file whose lines are all different, and the lines that
// breakpoints with these numbers are pinned to. It knows nothing of shifts.
type paper struct {
	lines []string
	pins  map[int]string
	next  int
}

func (p *paper) fresh(n int) []string {
	out := make([]string, n)
	for i := range out {
		p.next++
		out[i] = fmt.Sprintf("line %d", p.next)
	}
	return out
}

func (p *paper) edit(e env.Edit) {
	if e.Whole {
		p.lines = p.fresh(e.Added)
		return
	}
	p.lines = slices.Replace(p.lines, e.First-1, e.First-1+e.Removed, p.fresh(e.Added)...)
}

// want is where the breakpoints must stand; pins of lines that are gone are dropped.
func (p *paper) want() map[int]int {
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

// shape is an edit made of three numbers: any that a file of so many lines allows.
func shape(lines int, where, removed, added byte) env.Edit {
	e := env.Edit{File: "a.py", First: 1 + int(where)%(lines+1), Added: int(added) % 12}
	e.Removed = min(int(removed)%12, lines+1-e.First)
	if where == 255 {
		e = env.Edit{File: "a.py", Whole: true, Added: e.Added}
	}
	return e
}

// checkEdits plays a script of breakpoints and edits, four bytes each.
func checkEdits(t *testing.T, script []byte) {
	t.Helper()
	d, p := New(Config{Workdir: workdir, Entrypoint: "python3 a.py"}), &paper{pins: map[int]string{}}
	p.lines = p.fresh(40)
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
		e := shape(len(p.lines), script[1], script[2], script[3])
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
		gone := slices.DeleteFunc(before, func(n int) bool { return p.pins[n] != "" })
		if len(d.d.breakpoints.notes) != len(gone) {
			t.Fatalf("step %d, %+v: notes %q, want one for each of %v", step, e, d.d.breakpoints.notes, gone)
		}
		for i, n := range gone {
			if !strings.HasPrefix(d.d.breakpoints.notes[i], fmt.Sprintf("Breakpoint %d at a.py:", n)) {
				t.Errorf("step %d: note %q, want one of breakpoint %d", step, d.d.breakpoints.notes[i], n)
			}
		}
	}
}

// After any edits, the text of a breakpoint's line is the same. If the line is gone, so is the
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
