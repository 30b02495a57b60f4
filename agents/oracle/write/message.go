package write

import (
	"fmt"
	"hash/fnv"
	"regexp"
	"strconv"
	"strings"

	"github.com/tracesmith/tracesmith/agents/testcmd"
	"github.com/tracesmith/tracesmith/schemas"
)

// message is the text of a turn with what it asserts. Sentences that assert something about the
// program take it from their claims, so that text and claims cannot disagree.
type message struct {
	text   string
	claims []schemas.Claim
}

func say(text string, claims ...schemas.Claim) message {
	return message{text, append([]schemas.Claim{}, claims...)}
}

// then returns the message with the sentences of another after its own.
func (m message) then(next message) message {
	return message{strings.TrimSpace(m.text + " " + next.text), append(append([]schemas.Claim{}, m.claims...), next.claims...)}
}

// maxSentences is the number of sentences that the prompt allows before a call.
const maxSentences = 3

// sentenceEnd matches the end of a sentence, in a text without quotations.
var sentenceEnd = regexp.MustCompile(`[.?!](?: |$)`)

func (m message) sentences() int {
	return len(sentenceEnd.FindAllString(quotation.ReplaceAllString(m.text, "x"), -1))
}

var quotation = regexp.MustCompile("`[^`]*`")

// afterLearned returns a message after what the last call has shown, if there is room for both.
func (n *Notes) afterLearned(m message) message {
	if all := n.learned().then(m); all.sentences() <= maxSentences {
		return all
	}
	return m
}

// words chooses among several ways to say the same, by the seed of the episode and the number of calls.
func (n *Notes) words(ways ...string) string {
	return ways[draw(uint64(n.Seed), uint64(n.Calls))%uint64(len(ways))] //nolint:gosec // any bits will do
}

// Draw returns a number below a limit that depends on the seed of the episode and on what is decided.
func (n *Notes) Draw(limit uint64, what string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(what))
	return draw(uint64(n.Seed), h.Sum64()) % limit //nolint:gosec // any bits will do
}

func draw(seed, n uint64) uint64 {
	x := seed*0x9e3779b97f4a7c15 + n*0xbf58476d1ce4e5b9
	x ^= x >> 29
	x *= 0x94d049bb133111eb
	return x ^ x>>32
}

// learned says what the last call has shown.
func (n *Notes) learned() message {
	if n.last.ToolCall == nil || n.last.Observation == nil {
		return message{}
	}
	if n.last.Observation.IsError {
		return n.learnedFromError()
	}
	switch n.last.ToolCall.Name {
	case "eval":
		return n.learnedFromTests()
	case "grep":
		return n.learnedFromSearch()
	case "pdb":
		return n.learnedFromDebugger()
	}
	return message{}
}

func (n *Notes) learnedFromError() message {
	if n.last.Observation.TimedOut {
		return say("The program did not get there within the time limit.")
	}
	if stop := n.At(); stop != nil && len(stop.Values) > 0 && stop.Values[len(stop.Values)-1].IsError {
		v := stop.Values[len(stop.Values)-1]
		if !isShort(v.Text) {
			return say(fmt.Sprintf("`%s` raises an error here.", v.Expression))
		}
		return say(fmt.Sprintf(n.words("`%s` raises `%s`.", "`%s` fails here with `%s`."), v.Expression, v.Text),
			schemas.Claim{Kind: schemas.ClaimReports, Message: v.Text})
	}
	return say(n.words("That did not work.", "That call failed."))
}

func (n *Notes) learnedFromTests() message {
	if n.Edits > 0 || len(n.Failures) == 0 {
		return message{}
	}
	f := n.Failures[0]
	if n.Test != nil {
		f = *n.Test
	}
	return n.failing(f)
}

// failing says which test fails, and what it reports.
func (n *Notes) failing(f Failure) message {
	fails := schemas.Claim{Kind: schemas.ClaimFails, Test: f.ID}
	test := "The failing test is"
	if len(n.Failures) > 1 {
		test = "One of the failing tests is"
	}
	if f.Message == "" {
		return say(fmt.Sprintf(n.words("`%s` fails.", test+" `%s`."), f.ID), fails)
	}
	reports := schemas.Claim{Kind: schemas.ClaimReports, Test: f.ID, Message: f.Message}
	return say(fmt.Sprintf(n.words("`%s` fails with `%s`.", test+" `%s`, and its error is `%s`.", "`%s` reports `%s`."), f.ID, f.Message), fails, reports)
}

func (n *Notes) learnedFromSearch() message {
	name, ok := strings.CutPrefix(argument(n.last, "pattern"), `(def|class) `)
	if !ok {
		return n.learnedSetting()
	}
	name = strings.TrimSuffix(name, `\b`)
	var found []Function
	inTests := false
	for _, f := range n.Functions() {
		if f.Name == name && !testcmd.IsTestFile(f.File) {
			found = append(found, f)
		}
		inTests = inTests || f.Name == name && testcmd.IsTestFile(f.File)
	}
	switch {
	case len(found) == 0 && strings.HasPrefix(name, "test"):
		return say(fmt.Sprintf("Only tests define `%s`.", name))
	case len(found) == 0 && inTests:
		return say(fmt.Sprintf(n.words("Only tests define `%s`.", "`%s` is a helper of the tests."), name))
	case len(found) == 0:
		return say(fmt.Sprintf(n.words("No file of the program defines `%s`.", "`%s` is not defined in this repository."), name))
	case len(found) == 1:
		return say(fmt.Sprintf(n.words("`%s` is defined in %s at line %d.", "`%s` is in %s, line %d."), name, found[0].File, found[0].Line), found[0].defines())
	}
	return say(fmt.Sprintf(n.words("`%s` has several definitions.", "More than one place defines `%s`."), name))
}

// learnedSetting says what a search for the line that sets a name has shown.
func (n *Notes) learnedSetting() message {
	name, ok := strings.CutPrefix(argument(n.last, "pattern"), `^\s*`)
	name, isSetting := strings.CutSuffix(name, `\s*=`)
	if !ok || !isSetting {
		return message{}
	}
	at, found := n.setting(name)
	if !found {
		return say(fmt.Sprintf("No line of the program sets `%s`.", name))
	}
	return say(fmt.Sprintf("%s sets `%s` in line %d.", at.File, name, at.Line), schemas.Claim{Kind: schemas.ClaimSource, File: at.File, Line: at.Line, Text: n.text(at)})
}

func (n *Notes) learnedFromDebugger() message {
	if n.isContrast() {
		return n.learnedFromContrast()
	}
	if n.isStuck {
		return n.learnedStuck()
	}
	if f, ok := n.FunctionAt(n.breakpoint()); ok && n.hasMissed {
		return say(fmt.Sprintf(n.words("The test ended without stopping in `%s`.", "The program ended, and it was never in `%s`."), f.Name),
			schemas.Claim{Kind: schemas.ClaimNotReached, Function: f.Name})
	}
	stop := n.At()
	if stop == nil {
		return message{}
	}
	command := strings.TrimSpace(argument(n.last, "command"))
	word, expression, _ := strings.Cut(command, " ")
	switch word {
	case "c":
		claim := schemas.Claim{Kind: schemas.ClaimStops, Function: stop.Function, File: stop.File, Line: stop.Line}
		return say(fmt.Sprintf(n.words("The program stopped in `%s` at line %d.", "It stopped in `%s`, at line %d.", "Now it is in `%s`, before line %d."), stop.Function, stop.Line), claim)
	case "until":
		if line, err := strconv.Atoi(expression); err == nil && stop.Event == "line" && stop.Line != line {
			return say(fmt.Sprintf(n.words("It did not stop at line %d, but at line %d.", "Line %d was not the next one. It stopped at line %d."), line, stop.Line),
				schemas.Claim{Kind: schemas.ClaimStops, Function: stop.Function, File: stop.File, Line: stop.Line})
		}
	case "s":
		return say(fmt.Sprintf(n.words("Now it is at the beginning of `%s`.", "It is in `%s` now."), stop.Function), schemas.Claim{Kind: schemas.ClaimStops, Function: stop.Function})
	case "r", "n":
		if stop.Returns != "" && isShort(stop.Returns) {
			claim := schemas.Claim{Kind: schemas.ClaimReturns, Function: stop.Function, Value: stop.Returns}
			return say(fmt.Sprintf(n.words("`%s` returns `%s`.", "The result of `%s` is `%s`."), stop.Function, stop.Returns), claim)
		}
	case "w":
		return n.learnedStack(n.last.Observation.Text)
	case "p":
		return n.learnedValues(*stop, expression)
	}
	return message{}
}

// learnedValues says which values the debugger has printed.
func (n *Notes) learnedValues(stop Stop, expression string) message {
	m := message{}
	for _, name := range splitTuple(expression) {
		v, ok := stop.Value(name)
		if !ok || v.IsError || !isShort(v.Text) || isConstant(name) || len(m.claims) == 2 {
			continue
		}
		claim := schemas.Claim{Kind: schemas.ClaimValue, Expression: v.Expression, Value: v.Text}
		text := fmt.Sprintf("`%s` is `%s`", v.Expression, v.Text)
		if m.text != "" {
			text = " and " + text
		}
		m = message{m.text + text, append(m.claims, claim)}
	}
	if m.text != "" {
		_, st, ok := n.statementAt(stop.Place)
		if v, printed := stop.Value(expression); ok && printed && stop.Event == "line" && oneLine(st.evaluated()) == expression {
			if branch := st.branch(v); branch != "" {
				return message{m.text + ", so " + branch + ".", m.claims}
			}
		}
		if v, ok := stop.Value(expression); ok {
			if refuted := n.refutes(stop, expression, v.Text); refuted != "" {
				return message{m.text + ", " + refuted + ".", m.claims}
			}
		}
		m.text += n.words(".", " here.", " at this point.")
	}
	return m
}

// isShort reports whether a message can quote a value.
func isShort(value string) bool {
	return len(value) <= 80 && !strings.ContainsAny(value, "`\n") && value != ""
}

// qualified returns the name of a function with that of its class.
func (f Function) qualified() string {
	if f.Class == "" || f.IsClass {
		return f.Name
	}
	return f.Class + "." + f.Name
}

// unique returns the name of a function, with that of its class if the program has shown several functions with the name.
func (n *Notes) unique(f Function) string {
	for _, g := range n.Functions() {
		if g.Name == f.Name && g.Place != f.Place && !testcmd.IsTestFile(g.File) {
			return f.qualified()
		}
	}
	return f.Name
}

// defines returns the claim that a definition is where it is.
func (f Function) defines() schemas.Claim {
	return schemas.Claim{Kind: schemas.ClaimDefines, Function: f.Name, File: f.File, Line: f.Line}
}
