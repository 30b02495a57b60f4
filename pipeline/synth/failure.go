package synth

import (
	"regexp"
	"slices"
)

// Failure describes how one test failed. python/tracesmith_failure.py creates it.
type Failure struct {
	Test      string  `json:"test"`
	Type      string  `json:"type"`      // of the exception
	Message   string  `json:"message"`   // of the exception
	Text      string  `json:"text"`      // the exception, as a traceback prints it at its end
	Frames    []Frame `json:"frames"`    // frames in the repository's files, outermost first
	Statement string  `json:"statement"` // the failing statement of the test
	// Lines are the failing statements of the test and of its innermost helper, outermost first.
	Lines  []TestLine `json:"lines,omitempty"`
	Values []string   `json:"values,omitempty"` // what variables of the last line hold, as assignments
	Left   string     `json:"left,omitempty"`   // left value of the failed comparison
	Right  string     `json:"right,omitempty"`  // right value of the failed comparison
	Part   string     `json:"part,omitempty"`   // what Left and Right hold: "len" (lengths of the compared values), "list" (their keys), or "" (the values, or parts of them)
	Scene  *Scene     `json:"scene,omitempty"`  // nil if the failing statement could not be analyzed
}

// TestLine is a statement of a function of a test file.
type TestLine struct {
	Function string `json:"function"`
	Code     string `json:"code"`
}

// Scene describes the failing statement of a test, and the code before it, as a user of the
// program would write them. python/tracesmith_scene.py creates it.
type Scene struct {
	Relation      string   `json:"relation"`          // relationEqual, relationTrue, ...
	Call          string   `json:"call"`              // the expression under test, or the statement; "" if it uses names that mean nothing outside the test
	Short         string   `json:"short,omitempty"`   // Call without its arguments
	Want          string   `json:"want,omitempty"`    // source of the expected value, if it is a literal
	Swapped       bool     `json:"swapped,omitempty"` // the test names the expected value first
	Raises        string   `json:"raises,omitempty"`  // the expected exception
	Imports       []string `json:"imports,omitempty"` // imports that Before and Call need
	Before        []string `json:"before,omitempty"`  // statements that must run before Call
	SelfContained bool     `json:"whole,omitempty"`   // Imports, Before and Call run without the test
}

// What a test expects of an expression.
const (
	relationEqual  = "equal"
	relationTrue   = "true"
	relationFalse  = "false"
	relationRaises = "raises"
	// The script also uses "other" for other assertions and "run" for statements that are not assertions.
)

// masks replace what differs between machines and runs: memory addresses (including those that unittest truncates),
// pytest's temporary directories, and the installation path of Python.
var masks = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`\b0x[0-9a-fA-F]{6,}`), "0x..."},
	{regexp.MustCompile(`\[\d+ chars\][0-9a-fA-F]{1,16}>`), "...>"},
	{regexp.MustCompile(`/tmp/pytest-of-[^/\s]+/pytest-\d+/`), "/tmp/"},
	{regexp.MustCompile(`(?:/[\w.+-]+)+/lib/python3`), "/usr/lib/python3"},
}

// mask makes the texts independent of the machine and the run.
func (f *Failure) mask() {
	texts := []*string{&f.Message, &f.Text, &f.Left, &f.Right}
	for i := range f.Values {
		texts = append(texts, &f.Values[i])
	}
	if f.Scene != nil {
		texts = append(texts, &f.Scene.Call)
		for i := range f.Scene.Before {
			texts = append(texts, &f.Scene.Before[i])
		}
	}
	for _, text := range texts {
		*text = masked(*text)
	}
}

// masked returns text with masks applied.
func masked(text string) string {
	for _, m := range masks {
		text = m.pattern.ReplaceAllString(text, m.with)
	}
	return text
}

// Frame is one frame of a traceback.
type Frame struct {
	File     string `json:"file"`
	Line     int    `json:"line"`
	Function string `json:"function"`
}

// How much the first traceback shows of a bug (schemas.Difficulty.GoldVisible).
const (
	seenRoot  = 0 // a changed line
	seenFrame = 1 // a frame of the program, but no changed line
	seenTests = 2 // only frames of tests
)

// visible returns how much of the bug a failure's traceback shows. lines are the changed
// lines by file.
func visible(f Failure, lines map[string][]int) int {
	best := seenTests
	for _, frame := range f.Frames {
		switch {
		case slices.Contains(lines[frame.File], frame.Line):
			return seenRoot
		case !isTest(frame.File):
			best = seenFrame
		}
	}
	return best
}
