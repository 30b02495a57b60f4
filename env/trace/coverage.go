package trace

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"slices"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/verify"
	"github.com/tracesmith/tracesmith/schemas"
)

// maxLine is the highest line number that ReadCoverage accepts.
const maxLine = 1 << 20

// Lines maps files of the workspace to sorted line numbers.
type Lines map[string][]int

// Coverage has the lines that each test of a run executed.
type Coverage struct {
	Tests map[string]Lines // by test id, including the fixtures of the test
	// Outside are the lines executed outside of tests: at import, at collection and
	// between tests.
	Outside Lines
	Cut     bool // some lines are missing because a limit was reached
}

// CoverProbe returns the probe of Cover, for callers that make the test runs themselves.
func CoverProbe() *verify.Probe { return newProbe(baseSource, map[string]any{"mode": "cover"}) }

// Cover runs the tests of a tree with a patch and returns the lines of the workspace that each test
// executed. Run.Tests has the statuses. If no test was traced, the error is ErrNoTrace.
func Cover(ctx context.Context, r Runner, t schemas.Task, tree env.Tree, patch []byte, variant verify.Variant) (Coverage, verify.Run, error) {
	variant.Probe = CoverProbe()
	run, err := runProbe(ctx, r, t, tree, patch, variant)
	if err != nil {
		return Coverage{}, run, err
	}
	c, err := ReadCoverage(run.Probe)
	return c, run, err
}

// ReadCoverage reads the output of CoverProbe. If no test was traced, the error is ErrNoTrace.
func ReadCoverage(output []byte) (Coverage, error) {
	c := readCoverage(output)
	if len(c.Tests) == 0 {
		return c, ErrNoTrace
	}
	return c, nil
}

func readCoverage(raw []byte) Coverage {
	c := Coverage{Tests: map[string]Lines{}, Outside: Lines{}}
	readRecords(raw, func(r record) {
		var name string
		var cut bool
		var files [][2]json.RawMessage
		switch {
		case r.kind == "cut":
			c.Cut = true
		case r.kind == "test" && r.decode(&name, &files, &cut):
			lines := c.Outside
			if name != "" {
				if c.Tests[name] == nil {
					c.Tests[name] = Lines{}
				}
				lines = c.Tests[name]
			}
			c.Cut = c.Cut || cut
			for _, f := range files {
				var file string
				var ranges [][2]int
				if json.Unmarshal(f[0], &file) == nil && json.Unmarshal(f[1], &ranges) == nil {
					lines.add(file, ranges)
				}
			}
		}
	})
	return c
}

func (l Lines) add(file string, ranges [][2]int) {
	lines := l[file]
	for _, r := range ranges {
		if r[0] < 1 || r[1] < r[0] || r[1] > maxLine {
			continue
		}
		for n := r[0]; n <= r[1]; n++ {
			lines = append(lines, n)
		}
	}
	slices.Sort(lines)
	l[file] = slices.Compact(lines)
}

// Suspect is a line of the program that may contain the bug.
type Suspect struct {
	File  string
	Line  int
	Score float64 // how strongly its execution correlates with failures, from 0 to 1
	Rank  int     // 1 for the highest score; lines with equal scores all get the worst rank among them
}

// Ochiai ranks the lines that failing tests execute. The score of a line is
// ef / sqrt((ef + nf) * (ef + ep)): ef failing and ep passing tests execute the line, and
// nf failing tests do not (Abreu, Zoeteweij and van Gemund, "An Evaluation of Similarity
// Coefficients for Software Fault Localization", PRDC 2006). failed reports whether a test
// failed. Ochiai ranks only files for which isProgram returns true.
func (c Coverage) Ochiai(failed func(id string) bool, isProgram func(file string) bool) []Suspect {
	type line struct {
		file string
		n    int
	}
	fails, ef, ep := 0, map[line]int{}, map[line]int{}
	for id, files := range c.Tests {
		count := ep
		if failed(id) {
			fails, count = fails+1, ef
		}
		for file, lines := range files {
			if !isProgram(file) {
				continue
			}
			for _, n := range lines {
				count[line{file, n}]++
			}
		}
	}
	var out []Suspect
	for at, hit := range ef {
		out = append(out, Suspect{File: at.file, Line: at.n, Score: float64(hit) / math.Sqrt(float64(fails)*float64(hit+ep[at]))})
	}
	slices.SortFunc(out, func(a, b Suspect) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	for i := len(out) - 1; i >= 0; i-- {
		out[i].Rank = i + 1
		if i+1 < len(out) && out[i].Score == out[i+1].Score {
			out[i].Rank = out[i+1].Rank
		}
	}
	return out
}
