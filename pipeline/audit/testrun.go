package audit

import (
	"strconv"
	"strings"
)

// TestRun is a run of tests whose result a step showed.
type TestRun struct {
	Step           int
	Passed, Failed int // -1 = unknown
	Results        []TestResult
}

// TestResult is the result of one test.
type TestResult struct {
	ID      string   // as the output names it: path::name, or only the name
	Outcome string   // passed, failed or error
	Message string   // the error message, if the output shows it
	Details []string // the lines after it that explain it
	Places  []Place
}

// Place is a line of a file.
type Place struct {
	File string
	Line int
}

// Result returns the result of a test. A name matches if it is the whole ID or its end. The result is nil if
// the output does not show it.
func (t *TestRun) Result(id string) *TestResult {
	for i := range t.Results {
		if got := t.Results[i].ID; got == id || strings.HasSuffix(got, "::"+id) || strings.HasSuffix(id, "::"+got) {
			return &t.Results[i]
		}
	}
	return nil
}

// number returns the number in a text, or -1.
func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return -1
	}
	return n
}
