package synth

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tracesmith/tracesmith/env/trace"
)

// coverage is the lines of the program that run at import and under each kept test, as
// ranges: "3-7,9".
type coverage struct {
	Import map[string]string            `json:"import"` // by file
	Tests  map[string]map[string]string `json:"tests"`  // by test and file
}

// of returns the coverage of some of the tests.
func (c coverage) of(tests []string) coverage {
	out := coverage{Import: c.Import, Tests: map[string]map[string]string{}}
	for _, id := range tests {
		if files, known := c.Tests[id]; known {
			out.Tests[id] = files
		}
	}
	return out
}

// covering returns the tests that execute one of the lines, sorted. nil with reached
// set means all tests, because a line runs at import.
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

// lines returns the lines of a file that run at import or under a test, sorted.
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

// linesOfTest returns those of the lines that a test executes; old maps a line to the
// line of the healthy file.
func (c coverage) linesOfTest(id string, lines trace.Lines, old func(file string, line int) int) trace.Lines {
	out := trace.Lines{}
	for file, spans := range c.Tests[id] {
		ranges := parseSpans(spans)
		for _, n := range lines[file] {
			was := old(file, n)
			if slices.ContainsFunc(ranges, func(r [2]int) bool { return r[0] <= was && was <= r[1] }) {
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

// spans formats a sorted list of lines as ranges.
func spans(lines []int) string {
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
