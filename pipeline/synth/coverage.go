package synth

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tracesmith/tracesmith/env/trace"
)

// coverage holds the lines of the program that run at import and in each kept test. Lines
// are written as ranges, such as "3-7,9".
type coverage struct {
	Import map[string]string            `json:"import"` // by file
	Tests  map[string]map[string]string `json:"tests"`  // by test and file
}

// forTests returns the coverage restricted to some of the tests.
func (c coverage) forTests(tests []string) coverage {
	out := coverage{Import: c.Import, Tests: map[string]map[string]string{}}
	for _, id := range tests {
		if files, known := c.Tests[id]; known {
			out.Tests[id] = files
		}
	}
	return out
}

// covering returns the tests that execute one of the lines, sorted. If one of the lines
// runs at import, all tests count, and tests is nil. reached is false if no test executes
// any of the lines.
func (c coverage) covering(lines map[string][]int) (tests []string, reached bool) {
	for file, numbers := range lines {
		if containsAny(c.Import[file], numbers) {
			return nil, true
		}
	}
	for _, id := range slices.Sorted(maps.Keys(c.Tests)) {
		for file, numbers := range lines {
			if containsAny(c.Tests[id][file], numbers) {
				tests = append(tests, id)
				break
			}
		}
	}
	return tests, len(tests) > 0
}

// lines returns the lines of a file that run at import or in a test, sorted.
func (c coverage) lines(file string) []int {
	all := map[int]bool{}
	add := func(spans string) {
		for _, r := range parseSpans(spans) {
			for n := r[0]; n <= r[1]; n++ {
				all[n] = true
			}
		}
	}
	add(c.Import[file])
	for _, files := range c.Tests {
		add(files[file])
	}
	return slices.Sorted(maps.Keys(all))
}

// linesOfTest returns the subset of lines, which are lines of the buggy tree, that a test
// executes according to its coverage of the healthy tree. old maps a line of a buggy file to
// the line of the healthy file.
func (c coverage) linesOfTest(id string, lines trace.Lines, old func(file string, line int) int) trace.Lines {
	out := trace.Lines{}
	for file, spans := range c.Tests[id] {
		ranges := parseSpans(spans)
		for _, n := range lines[file] {
			oldLine := old(file, n)
			if slices.ContainsFunc(ranges, func(r [2]int) bool { return r[0] <= oldLine && oldLine <= r[1] }) {
				out[file] = append(out[file], n)
			}
		}
	}
	return out
}

// containsAny reports whether one of the numbers is in the ranges.
func containsAny(spans string, numbers []int) bool {
	for _, r := range parseSpans(spans) {
		for _, n := range numbers {
			if r[0] <= n && n <= r[1] {
				return true
			}
		}
	}
	return false
}

// parseSpans parses ranges such as "3-7,9" as pairs of the first and the last line.
func parseSpans(text string) [][2]int {
	var out [][2]int
	for part := range strings.SplitSeq(text, ",") {
		first, last, ranged := strings.Cut(part, "-")
		a, err := strconv.Atoi(first)
		if err != nil {
			continue
		}
		b := a
		if ranged {
			if b, err = strconv.Atoi(last); err != nil {
				continue
			}
		}
		out = append(out, [2]int{a, b})
	}
	return out
}

// formatSpans formats a sorted list of lines as ranges, such as "3-7,9".
func formatSpans(lines []int) string {
	var out []string
	for i := 0; i < len(lines); {
		j := i
		for j+1 < len(lines) && lines[j+1] == lines[j]+1 {
			j++
		}
		if i == j {
			out = append(out, strconv.Itoa(lines[i]))
		} else {
			out = append(out, fmt.Sprintf("%d-%d", lines[i], lines[j]))
		}
		i = j + 1
	}
	return strings.Join(out, ",")
}
