package synth

import (
	"regexp"
	"slices"
)

// Failure describes how one test failed (python/tracesmith_failure.py).
type Failure struct {
	Test      string  `json:"test"`
	Type      string  `json:"type"`    // of the exception
	Message   string  `json:"message"` // of the exception
	Text      string  `json:"text"`    // as a traceback ends
	Frames    []Frame `json:"frames"`  // of the project, outermost first
	Statement string  `json:"statement"`
	Left      string  `json:"left,omitempty"` // of the failed comparison
	Right     string  `json:"right,omitempty"`
	Scene     *Scene  `json:"scene,omitempty"` // nil: the statement cannot be told apart from its test
}

// Scene is what the failing statement of a test does (python/tracesmith_scene.py).
type Scene struct {
	Relation string   `json:"relation"` // one of relation*
	Call     string   `json:"call"`     // the expression under test, or the statement
	Want     string   `json:"want,omitempty"`
	Swapped  bool     `json:"swapped,omitempty"` // the test names the expected value first
	Raises   string   `json:"raises,omitempty"`  // the expected exception
	Imports  []string `json:"imports,omitempty"` // that the code needs
	Before   []string `json:"before,omitempty"`  // code of the test that runs before
	Whole    bool     `json:"whole,omitempty"`   // Imports, Before and Call run without the test
}

// What a test expects of an expression.
const (
	relationEqual  = "equal"
	relationTrue   = "true"
	relationFalse  = "false"
	relationRaises = "raises"
	// relationOther stands for other assertions, "run" for statements that assert nothing.
)

var address = regexp.MustCompile(`\b0x[0-9a-fA-F]{6,}`)

// settle removes details that differ between runs.
func (f *Failure) settle() {
	texts := []*string{&f.Message, &f.Text, &f.Left, &f.Right}
	if f.Scene != nil {
		for i := range f.Scene.Before {
			texts = append(texts, &f.Scene.Before[i])
		}
	}
	for _, text := range texts {
		*text = address.ReplaceAllString(*text, "0x...")
	}
}

// Frame is one place of a traceback.
type Frame struct {
	File     string `json:"file"`
	Line     int    `json:"line"`
	Function string `json:"function"`
}

// Visibility of a bug in its first traceback.
const (
	seenRoot  = 0 // the changed line itself
	seenFrame = 1 // a frame of the program
	seenTests = 2 // frames of tests only
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
