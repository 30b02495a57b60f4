// Package handover defines the handover tool, with which a seeking model ends its part of the
// work, and the context pack that a solving model gets. Each item of the pack names the step that
// showed it, and the tool refuses a call with an item that its step did not show. The pack quotes
// recorded steps and not files on disk, so the functions of this package depend only on their
// arguments.
package handover

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/tools"
)

// Name is the name of the tool.
const Name = "handover"

// Pack is what a seeker hands over to a solver.
type Pack struct {
	Cause      string
	CauseSteps []int
	Files      []Excerpt
	Values     []Value
}

// Excerpt holds lines of a file as a step showed them.
type Excerpt struct {
	Path  string // relative to the workspace
	Start int    // 1-based
	End   int    // inclusive
	Step  int    // index of the step
	Tool  string // the tool that the step called
	Note  string
	Lines []Line
}

// Line is a line without its line break.
type Line struct {
	Number int
	Text   string
}

// Value is a value that a step showed, and the expression that has this value.
type Value struct {
	Expression string
	Value      string
	Step       int
	Tool       string
	Note       string
	// Unverified says that the step showed expression and value, but not that they belong
	// together.
	Unverified bool
}

// arguments holds the arguments of a call.
type arguments struct {
	Cause      string        `json:"cause" jsonschema:"One sentence: which code makes which value wrong, and why that leads to the failure."`
	CauseSteps []int         `json:"cause_steps,omitempty" jsonschema:"Numbers of the steps that show the cause."`
	Files      []excerptArgs `json:"files,omitempty" jsonschema:"The code that the engineer must understand or change, as view, grep or the debugger's listing showed it."`
	Values     []valueArgs   `json:"values,omitempty" jsonschema:"What you observed: values of expressions, output, error messages."`
}

type excerptArgs struct {
	Path  string  `json:"path" jsonschema:"Path of the file, relative to the workspace."`
	Start int     `json:"start" jsonschema:"First line."`
	End   *int    `json:"end,omitempty" jsonschema:"Last line, inclusive. Default: start."`
	Step  int     `json:"step" jsonschema:"Number of the step that showed these lines."`
	Note  *string `json:"note,omitempty" jsonschema:"What to notice in these lines."`
}

type valueArgs struct {
	Expression string  `json:"expression" jsonschema:"What you looked at, as you wrote it in that step or as the step showed it."`
	Value      string  `json:"value" jsonschema:"What the step showed, copied exactly."`
	Step       int     `json:"step" jsonschema:"Number of the step that showed the value."`
	Note       *string `json:"note,omitempty" jsonschema:"What the value means."`
}

var definition = tools.Def[arguments]{
	Name: Name, Category: Name,
	Description: "End your part of the work: hand over what you found to an engineer, who writes the fix and sees nothing else of your work. " +
		"Give the cause, the lines of code that matter, and the values you observed, each with the number of the step that " +
		"showed it. Each answer ends with the number of its step. Every item is checked: if its step did not show a line or a value, " +
		"the call is refused, and you can correct it. The engineer gets the lines as they were shown, so include all lines that a fix needs.",
	Required: []string{"cause_steps", "files"},
	Example: arguments{
		Cause:      "total() rounds each line before it adds them up, so the sum is a cent short.",
		CauseSteps: []int{9},
		Files:      []excerptArgs{{Path: "src/cart.py", Start: 12, End: new(18), Step: 7, Note: new("the rounding")}},
		Values:     []valueArgs{{Expression: "line.net", Value: "Decimal('0.335')", Step: 9, Note: new("before it is rounded")}},
	},
}

// Schema returns the tool's description for models.
func Schema() schemas.ToolSchema { return toolSchema() }

var toolSchema = sync.OnceValue(func() schemas.ToolSchema { return tools.Define(definition).Schema() })

// Answer checks a call against the steps before it. prompt describes the prompt that the call's
// reply answers. If the call is accepted, the observation is not an error; otherwise it lists
// what is wrong.
func Answer(workdir string, steps []schemas.Step, call schemas.ToolCall, prompt schemas.ContextOp) schemas.Observation {
	_, o := check(workdir, steps, call, prompt)
	return o
}

// Find returns the pack of the first accepted handover call in steps, if there is one.
func Find(workdir string, steps []schemas.Step) (Pack, bool) {
	for i, s := range steps {
		if Accepted(s) {
			var prompt schemas.ContextOp
			if s.Reply != nil && s.Reply.Context != nil {
				prompt = *s.Reply.Context
			}
			pack, _ := check(workdir, steps[:i], *s.ToolCall, prompt)
			return pack, true
		}
	}
	return Pack{}, false
}

// Accepted reports whether a step is a call of handover that was accepted.
func Accepted(s schemas.Step) bool {
	return s.ToolCall != nil && s.ToolCall.Name == Name && s.Observation != nil && !s.Observation.IsError
}

func check(workdir string, steps []schemas.Step, call schemas.ToolCall, prompt schemas.ContextOp) (Pack, schemas.Observation) {
	var pack Pack
	d := definition
	d.Call = func(_ context.Context, _ *env.Session, a arguments) (schemas.Observation, error) {
		c := checker{workdir: workdir, steps: steps, seenSteps: seenSteps(steps), prompt: prompt}
		p, problems := c.pack(a)
		if len(problems) > 0 {
			return schemas.Observation{}, tools.NewUserError("Nothing was handed over:\n%s\nCorrect the call, or look again first.", "- "+strings.Join(problems, "\n- "))
		}
		pack = p
		return schemas.Observation{Text: fmt.Sprintf("Handed over: %s and %s%s. Your part of the work is done.", plural(len(p.Files), "code excerpt"), plural(len(p.Values), "value"), unverifiedNote(p))}, nil
	}
	set, err := tools.NewSet([]tools.Tool{tools.Define(d)})
	if err != nil {
		panic(err) // the definition is a constant
	}
	o, err := set.Call(context.Background(), nil, call)
	if err != nil {
		panic(err) // only sandboxes fail, and this tool uses none
	}
	return pack, o
}

func plural(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// unverifiedNote says for how many values of a pack Unverified is set, or returns "" if there are none.
func unverifiedNote(p Pack) string {
	n := 0
	for _, v := range p.Values {
		if v.Unverified {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" (for %d of them, it is not verified that the value belongs to its expression)", n)
}

// seenSteps returns how many of the steps the model had seen when it made the call that follows
// them. The model had not seen the answers to other calls of the same reply.
func seenSteps(steps []schemas.Step) int {
	for i := len(steps) - 1; i >= 0; i-- {
		if r := steps[i].Reply; r != nil {
			if len(steps)-i < len(r.Calls) {
				return i
			}
			break
		}
	}
	return len(steps)
}
