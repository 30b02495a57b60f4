package write

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/agents/testcmd"
	"github.com/tracesmith/tracesmith/schemas"
)

// sayCause names the cause before an edit: the line, its value, and the value with the change.
func (n *Notes) sayCause(f Function, st Placed, c change, outcome, tried Value) message {
	if n.Undone && isShort(c.expression) && isShort(c.original) && isShort(tried.Text) && isShort(outcome.Text) && !outcome.IsError {
		return say(fmt.Sprintf(n.words("In the debugger, `%s` was `%s`, but `%s` was `%s`. I make that change instead.", "Where `%s` was `%s`, `%s` was `%s`. I try this change."), c.original, outcome.Text, c.expression, tried.Text),
			schemas.Claim{Kind: schemas.ClaimValue, Expression: c.original, Value: outcome.Text}, schemas.Claim{Kind: schemas.ClaimValue, Expression: c.expression, Value: tried.Text})
	}
	m := n.cause(f, st, c.at, c.original, outcome)
	if m.quotes && isShort(c.expression) && isShort(tried.Text) {
		m.text += fmt.Sprintf(", while `%s` is `%s`", c.expression, tried.Text)
	} else {
		tried = Value{} // the text does not show it
	}
	change := say(n.words("I change the line accordingly.", "I make that change."))
	old := n.lines[c.at.File][c.at.Line]
	if strings.Count(old, c.old) > 1 && isShort(c.original) && isShort(c.expression) && strings.Contains(old, c.original) && strings.Contains(c.line, c.expression) {
		c.old, c.new = c.original, c.expression // says which of them
	}
	if c.old != "" && c.new != "" && isShort(c.old) && isShort(c.new) {
		change = say(fmt.Sprintf(n.words("I replace `%s` by `%s`.", "I write `%[2]s` in place of `%[1]s`."), c.old, c.new))
	}
	m.message = n.so(m.message).then(n.consequence(f, st, outcome, tried))
	if all := m.then(change); all.sentences() <= maxSentences {
		return all
	}
	return m.message
}

// so makes a sentence of a conclusion.
func (n *Notes) so(m message) message {
	if n.isContrast() && n.contrast.isVain() { // the conclusion does not follow from the last thing that the agent has seen
		return say(strings.ToUpper(m.text[:1])+m.text[1:]+".", m.claims...)
	}
	return say("So "+m.text+".", m.claims...)
}

// sayConclusion names the cause if no change of its line is known to repair it.
func (n *Notes) sayConclusion(f Function, st Placed, outcome Value) message {
	m := n.cause(f, st, st.Place, oneLine(st.evaluated()), outcome)
	end := "I have not tested a fix, so I change nothing."
	if n.hasTried(f, st) {
		end = "What I have tried in its place does not tell me the fix, so I leave that open."
	}
	all := say("I think that "+m.text+".", m.claims...).then(n.consequence(f, st, outcome, Value{})).then(say(end))
	if m.quotes { // what the last call has shown
		return all
	}
	return n.afterLearned(all)
}

// hasTried reports whether the debugger has evaluated a change of a statement that is more than a name.
func (n *Notes) hasTried(f Function, st Placed) bool {
	for _, c := range n.changes(f, st) {
		if n.compare(st, c).tried && c.expression != oneLine(st.evaluated()) && strings.ContainsAny(c.expression, " .([") {
			return true
		}
	}
	return false
}

// linesAround is the number of lines that the agent reads again above and below the cause.
const linesAround = 3

// explain names the cause and reads the lines around it again.
func (n *Notes) explain(f Function, st Placed, outcome Value) Option {
	m := n.cause(f, st, st.Place, oneLine(st.evaluated()), outcome)
	return Option{Kind: Explain, Function: f, Place: st.Place, Last: st.last, Raises: outcome.IsError,
		say: n.afterLearned(n.so(m.message).then(n.consequence(f, st, outcome, Value{})).then(say(
			n.words("Before I change it, I read the lines around it once more.", "I look at the lines around it again before I change them.")))),
		call: schemas.NewToolCall("view", map[string]any{"path": st.File, "start": max(1, st.Line-linesAround), "end": st.last + linesAround})}
}

// GoldEdit returns the turn with an edit that comes from the gold patch. Its text says nothing about the edit.
func (n *Notes) GoldEdit(call schemas.ToolCall) schemas.Reply {
	m := say("I change the code.")
	if n.GoldEdits > 0 {
		m = say("I go on with the next change.")
	}
	return Option{say: m, call: call}.Reply(n.Calls)
}

// clause is a part of a sentence.
type clause struct {
	message
	quotes bool // a value
}

// cause says which line is the cause and, if that is short, what it computes there and which branch it takes.
func (n *Notes) cause(f Function, st Placed, at Place, expression string, outcome Value) clause {
	claim := schemas.Claim{Kind: schemas.ClaimCause, Function: f.Name, File: at.File, Line: at.Line}
	text := fmt.Sprintf("line %d of `%s` is the cause", at.Line, f.Name)
	if expression == "" || outcome.Text == "" || isConstant(expression) {
		return clause{message: say(text, claim)}
	}
	if isObject(outcome.Text) {
		return clause{message: say(text, claim)}
	}
	isAfter := outcome.Expression != "" && outcome.Expression != expression && st.changed() != ""
	if isAfter {
		expression = outcome.Expression
	}
	claim.Reason = expression + " is " + outcome.Text
	if isAfter && isShort(outcome.Text) && st.kind == assignStatement && expression == oneLine(st.target) {
		return clause{say(fmt.Sprintf("%s: it sets `%s` to `%s`", text, expression, outcome.Text), claim), true}
	}
	if isAfter && isShort(outcome.Text) {
		return clause{say(fmt.Sprintf("%s: after it, `%s` is `%s`", text, expression, outcome.Text), claim), false}
	}
	if !isShort(expression) || !isShort(outcome.Text) {
		return clause{message: say(text, claim)}
	}
	is := "is"
	if outcome.IsError {
		is = "raises"
	}
	claims := []schemas.Claim{claim}
	if given := n.given(f, st, outcome); given.text != "" {
		text = fmt.Sprintf("%s: where %s, `%s` %s `%s`", text, given.text, expression, is, outcome.Text)
		claims = append(claims, given.claims...)
	} else {
		text = fmt.Sprintf("%s: `%s` %s `%s` there", text, expression, is, outcome.Text)
	}
	if branch := st.branch(outcome); branch != "" && expression == oneLine(st.evaluated()) {
		text += ", so " + branch
	}
	return clause{say(text, claims...), true}
}

// maxGiven is the number of values from which a text says that another one follows.
const maxGiven = 2

// given says which values the names in a statement had when it had an outcome, as a part of a sentence.
func (n *Notes) given(f Function, st Placed, outcome Value) message {
	var m message
	for i, stop := range slices.Backward(n.Stops) {
		if v, ok := n.outcomeAt(st, i); stop.Place != st.Place || stop.Event != "line" || !ok || v.Text != outcome.Text {
			continue
		}
		for _, name := range st.operands(n.names(f)) {
			v, ok := stop.Value(name)
			if !ok || v.IsError || name == oneLine(st.evaluated()) || len(v.Text) > 40 || !isShort(v.Text) || isObject(v.Text) || n.lastValue(name) != v.Text || len(m.claims) == maxGiven {
				continue
			}
			if m.text != "" {
				m.text += " and "
			}
			m.text += fmt.Sprintf("`%s` is `%s`", name, v.Text)
			m.claims = append(m.claims, schemas.Claim{Kind: schemas.ClaimValue, Expression: name, Value: v.Text})
		}
		break
	}
	return m
}

// lastValue returns the value of an expression that the debugger has printed last, or "".
func (n *Notes) lastValue(expression string) string {
	for _, stop := range slices.Backward(n.Stops) {
		if v, ok := stop.Value(expression); ok {
			return v.Text
		}
	}
	return ""
}

// consequence says how the value of a line leads to the failure, or else how the test gets to the function.
func (n *Notes) consequence(f Function, st Placed, outcome, tried Value) message {
	if isObject(outcome.Text) {
		return n.way(f)
	}
	if m := n.effect(f, st, outcome, tried); m.text != "" {
		return m
	}
	return n.way(f)
}

// maxWay is the number of calls that a text lists.
const maxWay = 4

// way says which calls lead from the failing test to a function, as far as the agent has read them and unless the test calls the
// function itself, and what the test gets and expects, if that is known.
func (n *Notes) way(f Function) message {
	callers := map[string]string{}
	queue := []string{n.Test.ID}
	for len(queue) > 0 && callers[f.Name] == "" {
		caller := queue[0]
		queue = queue[1:]
		for _, name := range n.calledBy(caller) {
			if callers[name] == "" && cmp.Or(n.callers[name], caller) == caller {
				callers[name] = caller
				queue = append(queue, name)
			}
		}
	}
	got, want, expects := n.expected()
	var calls []schemas.Claim
	for name := f.Name; callers[name] != "" && len(calls) <= maxWay; name = callers[name] {
		calls = append(calls, schemas.Claim{Kind: schemas.ClaimCalls, Caller: callers[name], Function: name})
	}
	if (len(calls) < 2 || len(calls) > maxWay) && expects {
		return say(fmt.Sprintf(n.words("The test gets `%s` and expects `%s`.", "The test gets `%s` instead of `%s`."), got, want), n.reports())
	}
	if len(calls) < 2 || len(calls) > maxWay {
		return message{}
	}
	slices.Reverse(calls)
	text := fmt.Sprintf("The test calls `%s`", calls[0].Function)
	for _, c := range calls[1:] {
		text += fmt.Sprintf(", which calls `%s`", c.Function)
	}
	if expects {
		return say(fmt.Sprintf("%s, and it gets `%s` instead of `%s`.", text, got, want), append(calls, n.reports())...)
	}
	return say(text+".", calls...)
}

// calledBy returns the names that a function of the program, or the failing test, calls, as far as the agent has read it.
func (n *Notes) calledBy(caller string) []string {
	if caller == n.Test.ID {
		return n.TestCalls()
	}
	var out []string
	for _, f := range n.Functions() {
		if f.Name == caller && !f.IsClass && !testcmd.IsTestFile(f.File) && n.isRead(f) {
			out = append(out, called(n.join(f.File, n.body(f)[1:]))...)
		}
	}
	return out
}

// effect says how the value of a line leads to the failure: what the function returns then, or what the test reports. It
// returns an empty message if nothing has shown that.
func (n *Notes) effect(f Function, st Placed, outcome, tried Value) message {
	if m := n.compares(outcome.Text, tried.Text); m.text != "" && st.kind != conditionStatement {
		return m
	}
	if returns := n.returnedAfter(st); returns != "" && returns != "None" && returns != outcome.Text && isShort(returns) {
		m := say(fmt.Sprintf("That is why `%s` returns `%s`.", f.Name, returns), schemas.Claim{Kind: schemas.ClaimReturns, Function: f.Name, Value: returns})
		return m.then(n.compares(returns, ""))
	}
	if line := n.failsWith(f, outcome.Expression); line > 0 && n.Test.Message != "" && !strings.HasPrefix(strings.ToLower(n.Test.Message), "assert") {
		return say(fmt.Sprintf("Line %d uses `%s` and raises `%s`.", line, outcome.Expression, n.Test.Message), n.reports())
	}
	if outcome.IsError && strings.Contains(n.Test.Message, outcome.Text) {
		return say("The test reports this error.", n.reports())
	}
	return message{}
}

// returnedAfter returns what the last call that stopped at a statement has returned, or "" if nothing has shown it.
func (n *Notes) returnedAfter(st Placed) string {
	at := n.lastStop(st)
	if at < 0 {
		return ""
	}
	call := n.Stops[at]
	for _, s := range n.Stops[at+1:] {
		isSame := s.Run == call.Run && s.Depth == call.Depth && s.Function == call.Function
		switch {
		case s.Run != call.Run || s.Depth < call.Depth || isSame && s.byBreakpoint && s.Line <= call.Line:
			return "" // the call has ended
		case isSame && s.Returns != "":
			return s.Returns
		}
	}
	return ""
}
