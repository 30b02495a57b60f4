package write

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/agents/testcmd"
	"github.com/tracesmith/tracesmith/schemas"
)

// contrast is a run of a test that does not fail, up to a line at which the failing test was stopped.
type contrast struct {
	entry      string // the command line that runs the test
	test       string // its function
	place      Place
	expression string
	outcome    string // the value of the expression in the failing test

	stop   *Stop // nil until the program stops at the place
	others int   // stops at other breakpoints before that
	ended  bool  // without getting there
}

// maxOthers is the number of other stops after which the agent gives up a comparison.
const maxOthers = 3

func (c *contrast) isDone() bool {
	return c.ended || c.others > maxOthers || c.stop != nil && len(c.stop.Values) > 0
}

// isVain reports whether a comparison is done and has shown no difference.
func (c *contrast) isVain() bool {
	return c != nil && c.isDone() && (c.stop == nil || c.stop.Values[0].Text == c.outcome)
}

// isContrast reports whether the debugger runs another test than the failing one.
func (n *Notes) isContrast() bool {
	if n.Test == nil || n.entry == "" {
		return false
	}
	return n.entry != testcmd.One(n.command, n.Test.ID, true) && n.entry != testcmd.One(n.command, n.Test.ID, false)
}

// debugContrast takes notes of a call of the debugger that runs another test.
func (n *Notes) debugContrast(s schemas.Step, command, text string) {
	n.paused = false
	word, rest, _ := strings.Cut(command, " ")
	switch {
	case word == "tbreak":
		for _, o := range n.contrastOptions() {
			if argument(schemas.Step{ToolCall: &o.call}, "entrypoint") == n.entry && o.Place == n.temporary {
				n.contrast = o.contrast
			}
		}
	case n.contrast == nil:
	case s.State == nil || s.State.Frame == nil || s.Observation.TimedOut:
		n.contrast.ended = n.contrast.stop == nil
	case word == "c":
		f := s.State.Frame
		if n.contrast.place != (Place{f.File, f.Line}) {
			n.contrast.others++
			return
		}
		n.contrast.stop = &Stop{Place: Place{f.File, f.Line}, Function: f.Function, Event: f.Event, Run: n.run, Entry: n.entry}
	case word == "p" && n.contrast.stop != nil:
		n.contrast.stop.Values = append(n.contrast.stop.Values, values(rest, text, s.Observation.IsError)...)
	}
}

// contrastOptions returns the comparisons that the agent can begin: with a test near the failing one, at a line whose
// value in the failing test is known.
func (n *Notes) contrastOptions() []Option {
	if n.contrast != nil || n.Test == nil {
		return nil
	}
	test, entry := n.otherTest()
	if entry == "" {
		return nil
	}
	var out []Option
	for _, at := range n.stoppedAt() {
		st := at.statement
		expression := oneLine(st.evaluated())
		outcome, known := n.outcome(st)
		if !known || outcome.IsError || expression == "" || len(expression) > 100 || strings.Contains(expression, "`") || !isCondition(st, expression) {
			continue
		}
		m := say(fmt.Sprintf(n.words("`%s` does not fail. Does it get to line %d, and with which value?", "For comparison, I stop `%s`, which does not fail, at line %d."), test, st.Line))
		out = append(out, Option{Kind: Compare, Function: at.function, Place: st.Place, Last: st.last, say: n.afterLearned(m),
			call:     schemas.NewToolCall("pdb", map[string]any{"command": fmt.Sprintf("tbreak %s:%d", st.File, st.Line), "entrypoint": entry}),
			contrast: &contrast{entry: entry, test: test, place: st.Place, expression: expression, outcome: outcome.Text}})
	}
	return out
}

// isCondition reports whether a statement is a condition that computes its value, rather than a variable or a constant. Other values
// differ between two tests anyway.
func isCondition(st Placed, expression string) bool {
	tokens, _ := tokenize(expression)
	isOther := func(t token) bool { return t.kind != nameToken && !t.is(".") }
	return st.kind == conditionStatement && !isConstant(expression) && slices.ContainsFunc(tokens, isOther)
}

// oneIn is how many episodes there are for each one with a comparison.
const oneIn = 3

// compareOptions returns the comparisons of an episode that has one.
func (n *Notes) compareOptions() []Option {
	if n.Draw(oneIn, "contrast") != 0 {
		return nil
	}
	return n.contrastOptions()
}

// otherTest returns the function of the shown test that is closest to the failing one and does not fail, and the command that
// runs it, or "".
func (n *Notes) otherTest() (name, entry string) {
	failing := testcmd.Function(n.Test.ID)
	id, _, _ := strings.Cut(n.Test.ID, "[")
	base, least := strings.TrimSuffix(id, failing), 1<<20
	var at Function
	for _, f := range n.Functions() {
		if f.File == n.Test.At.File && f.Name == failing {
			at = f
		}
	}
	if at.Name == "" || base == id {
		return "", ""
	}
	for _, f := range n.Functions() {
		distance := max(f.Line-at.Line, at.Line-f.Line)
		if f.File != at.File || f.IsClass || f.indent != at.indent || f.Class != at.Class || f.Name == failing || !strings.HasPrefix(f.Name, "test") || distance >= least {
			continue
		}
		fails := false
		for _, other := range n.Failures {
			otherID, _, _ := strings.Cut(other.ID, "[")
			fails = fails || otherID == base+f.Name
		}
		if command := testcmd.One(n.command, base+f.Name, !n.noSelect); !fails && command != "" {
			name, entry, least = f.Name, command, distance
		}
	}
	return name, entry
}

// continueContrast returns the next step of a comparison.
func (n *Notes) continueContrast() []Option {
	c := n.contrast
	if c.stop == nil && c.others > 0 {
		return []Option{{Kind: Compare, say: say(n.words("That is another breakpoint. I let it run on.", "It stops at another breakpoint first. I continue.")), call: pdb("c")}}
	}
	if c.stop == nil {
		return []Option{{Kind: Compare, say: say(n.words("I run it up to there.", "I let it run.")), call: pdb("c")}}
	}
	m := say(fmt.Sprintf(n.words("It gets there. What is `%s` in this test?", "And what is `%s` here?"), c.expression),
		schemas.Claim{Kind: schemas.ClaimStops, File: c.place.File, Line: c.place.Line})
	return []Option{{Kind: Compare, say: m, call: pdb("p " + c.expression)}}
}

// learnedFromContrast says what a comparison has shown.
func (n *Notes) learnedFromContrast() message {
	c := n.contrast
	if c == nil || !c.isDone() {
		return message{}
	}
	if c.ended {
		return say(fmt.Sprintf("`%s` does not get to line %d, so I cannot compare the two tests there.", c.test, c.place.Line))
	}
	if c.stop == nil {
		return say("This comparison takes too long, so I leave it.")
	}
	v := c.stop.Values[0]
	if v.IsError || !isShort(v.Text) {
		return message{}
	}
	claim := schemas.Claim{Kind: schemas.ClaimValue, Expression: v.Expression, Value: v.Text}
	if v.Text == c.outcome {
		return say(fmt.Sprintf("`%s` is `%s` here as well, which does not tell the two tests apart.", v.Expression, v.Text), claim)
	}
	return say(fmt.Sprintf("In `%s`, `%s` is `%s`.", c.test, v.Expression, v.Text), claim)
}
