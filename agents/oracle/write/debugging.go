package write

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/agents/testcmd"
	"github.com/tracesmith/tracesmith/schemas"
)

// startOptions returns the breakpoints that the agent can set, and the command that runs to them.
func (n *Notes) startOptions() []Option {
	var out []Option
	test := n.testCommand()
	if test == "" || !slices.Contains(n.tools, "pdb") || n.Timeouts >= maxTimeouts {
		return nil
	}
	for _, f := range n.Functions() {
		if testcmd.IsTestFile(f.File) || f.IsClass || !n.isRead(f) {
			continue
		}
		entry := n.firstStatement(f)
		for _, st := range n.statements(f) {
			isSet := slices.ContainsFunc(n.points, func(p schemas.Breakpoint) bool { return p.File == st.File && p.Line == st.Line })
			if inner, ok := n.FunctionAt(st.Place); isSet || ok && inner.Place != f.Place {
				continue
			}
			for _, command := range []string{"b", "tbreak"} {
				args := map[string]any{"command": fmt.Sprintf("%s %s:%d", command, st.File, st.Line)}
				if n.entry != test {
					args["entrypoint"] = test
				}
				m := n.sayBreak(f, st)
				if st.Place == entry && !strings.ContainsAny(st.text, "`\n") && len(st.text) <= 100 {
					source := schemas.Claim{Kind: schemas.ClaimSource, File: st.File, Line: st.Line, Text: st.text}
					m = n.relation(f).then(say(fmt.Sprintf(n.words("`%s` begins with line %d, `%s`. I follow it from there.", "I want to follow `%s` from its beginning, line %d: `%s`."), n.unique(f), st.Line, st.text), source))
				}
				out = append(out, Option{Kind: Break, Function: f, Place: st.Place, Last: st.last, Temporary: command == "tbreak", IsEntry: st.Place == entry, Calls: called(st.text),
					say: n.afterLearned(m), call: schemas.NewToolCall("pdb", args)})
			}
		}
	}
	if len(n.points) > 0 {
		m, args := n.learned(), map[string]any{"command": "c"}
		if n.entry != test {
			args["entrypoint"] = test
			m = say("This version of unittest has no option -k, so I name the test by its module instead.", schemas.Claim{Kind: schemas.ClaimReports, Message: testcmd.NoSelect})
		}
		if command := argument(n.last, "command"); strings.HasPrefix(command, "b ") || strings.HasPrefix(command, "tbreak ") {
			m = say(n.words("I run the test up to there.", "Now I let the test run to the breakpoint.", "I continue to the breakpoint."))
		} else if n.At() == nil {
			m = m.then(say(n.words("I start the test again.", "I run the test once more.")))
		} else {
			if stop := n.At(); stop != nil && len(stop.Values) > 0 && strings.HasPrefix(command, "p ") {
				m = m.then(say(n.words("That does not tell me the reason yet.", "I do not see the reason here yet.", "That alone does not explain the failure.")))
			}
			m = m.then(say(n.words("I continue to the next stop.", "I let the program run on to the next stop.")))
		}
		out = append(out, Option{Kind: Continue, say: m, call: schemas.NewToolCall("pdb", args)})
	}
	return out
}

// firstStatement returns the place of the first statement of a function that has more than one, after its docstring.
func (n *Notes) firstStatement(f Function) Place {
	statements := slices.DeleteFunc(slices.Clone(n.statements(f)), func(st Placed) bool { return st.tokens[0].kind == stringToken })
	if len(statements) < 2 {
		return Place{}
	}
	return statements[0].Place
}

// testCommand returns the command that runs only the followed test, or "".
func (n *Notes) testCommand() string {
	return testcmd.One(n.command, n.Test.ID, !n.noSelect)
}

// sayArguments asks for the arguments. Behind the first statement, they may have other values than the caller passed.
func (n *Notes) sayArguments(f Function, at Place) message {
	if statements := n.statements(f); len(statements) > 0 && statements[0].Place != at && n.firstStatement(f) != at {
		return say(n.words("I look at its arguments.", "What are its arguments here?", "I print the arguments."))
	}
	return say(n.words("With which arguments was it called?", "I look at its arguments.", "What did the caller pass?"))
}

func (n *Notes) sayBreak(f Function, st Placed) message {
	source := schemas.Claim{Kind: schemas.ClaimSource, File: st.File, Line: st.Line, Text: st.text}
	relation := n.relation(f)
	if relation.text != "" {
		return relation.then(say(fmt.Sprintf(n.words("I stop there, at line %d.", "I look into that call and stop at line %d."), st.Line)))
	}
	if strings.ContainsAny(st.text, "`\n") || len(st.text) > 100 {
		return say(fmt.Sprintf(n.words("I want to see the values in `%s`, so I stop at line %d.", "Reading `%s` does not tell me the values. I stop at line %d."), f.Name, st.Line))
	}
	return say(fmt.Sprintf("%s `%s`.", n.role(f, st), st.text), source).then(
		say(n.words("I stop there in the failing test to see the actual values.", "I set a breakpoint on it, to look at the values in the failing test.",
			"Which values does it get in the failing test? I stop there.")))
}

// relation says how a function is connected with the one in which the program has last stopped.
func (n *Notes) relation(f Function) message {
	if len(n.Stops) == 0 {
		return message{}
	}
	last := n.Stops[len(n.Stops)-1]
	if last.Function == f.Name {
		return message{}
	}
	calls := func(g Function, name string) bool {
		return slices.Contains(called(n.join(g.File, n.body(g)[1:])), name)
	}
	if calls(f, last.Function) {
		return say(fmt.Sprintf(n.words("`%s` calls `%s` and works with the result.", "`%s` uses what `%s` returns."), f.Name, last.Function),
			schemas.Claim{Kind: schemas.ClaimCalls, Caller: f.Name, Function: last.Function})
	}
	if g, ok := n.FunctionAt(last.Place); ok && calls(g, f.Name) {
		return say(fmt.Sprintf("`%s` calls `%s`.", last.Function, f.Name), schemas.Claim{Kind: schemas.ClaimCalls, Caller: last.Function, Function: f.Name})
	}
	return message{}
}

// stopOptions returns what the agent can do while the program is paused in code that it has read.
func (n *Notes) stopOptions() []Option {
	stop := n.At()
	if stop == nil {
		return nil
	}
	f, ok := n.FunctionAt(stop.Place)
	if !ok || testcmd.IsTestFile(stop.File) {
		return nil
	}
	if strings.HasPrefix(stop.Function, "<") { // a lambda or a generator expression, whose names are others
		return []Option{{Kind: Return, Function: f, say: n.afterLearned(say("I run to the end of this expression.")), call: pdb("r")},
			{Kind: Next, Function: f, Place: stop.Place, say: n.afterLearned(n.sayNext(*stop)), call: pdb("n")}}
	}
	var out []Option
	if len(stop.Values) == 0 && !stop.asked && stop.isBeforeLine() && n.hasParameters(f) {
		out = append(out, Option{Kind: Arguments, Function: f, say: n.afterLearned(n.sayArguments(f, stop.Place)), call: pdb("a")})
	}
	if stop.Event == "line" && stop.byBreakpoint && !n.askedStack && !n.knowsCaller(f) {
		m := say(n.words("How does the program get here?", "Which call leads here? I look at the stack."))
		out = append(out, Option{Kind: Where, Function: f, Place: stop.Place, say: n.afterLearned(m), call: pdb("w")})
	}
	for _, expression := range n.printable(f, *stop) {
		out = append(out, Option{Kind: Print, Function: f, Expression: expression, say: n.afterLearned(n.sayPrint(expression)), call: pdb("p " + expression)})
	}
	out = append(out, n.narrowOptions(f, *stop)...)
	out = append(out, n.differOptions(f, *stop)...)
	out = append(out, n.skipOptions(*stop)...)
	out = append(out, n.tryOptions(f, *stop)...)
	out = append(out, n.repeatOptions(f, *stop)...)
	out = append(out, n.stepOptions(f, *stop)...)
	if stop.Event == "line" {
		out = append(out, n.nextOption(f, *stop))
	}
	if stop.isBeforeLine() {
		out = append(out, Option{Kind: Return, Function: f, say: n.afterLearned(say(fmt.Sprintf(n.words("I let `%s` run to its end to see what it returns.", "What does `%s` return?"), f.Name))), call: pdb("r")})
		for _, st := range n.statements(f) {
			if st.Line > stop.Line {
				m := say(fmt.Sprintf(n.words("I run on to line %d.", "I let it run to line %d."), st.Line))
				out = append(out, Option{Kind: Until, Function: f, Place: st.Place, Last: st.last, say: n.afterLearned(m), call: pdb(fmt.Sprintf("until %d", st.Line))})
			}
		}
	}
	return out
}

// isUnconditional reports whether the program is paused at a breakpoint that stays and has no condition.
func (n *Notes) isUnconditional(stop Stop) bool {
	return stop.breakpoint != "" && slices.ContainsFunc(n.points, func(p schemas.Breakpoint) bool {
		return p.File == stop.File && p.Line == stop.Line && p.Condition == "" && !p.Temporary
	})
}

// maxLiterals is the number of literals of the test that the agent considers for a condition.
const maxLiterals = 24

// narrowOptions returns the conditions that the agent can give the breakpoint at which the program is paused: a
// parameter, which has another value now, equals a literal of the test.
func (n *Notes) narrowOptions(f Function, stop Stop) []Option {
	if !n.isUnconditional(stop) {
		return nil
	}
	var out []Option
	for _, name := range n.parameters(f) {
		v, ok := stop.Value(name)
		if !ok {
			continue
		}
		if isShort(v.Text) && len(v.Text) <= 40 && isLiteral(v.Text) {
			m := say(fmt.Sprintf(n.words("`%s` is `%s` in this call. I compare with other calls: I stop only if it has another value.", "This call has `%s` as `%s`. I let the breakpoint stop only if it is something else."), name, v.Text),
				schemas.Claim{Kind: schemas.ClaimValue, Expression: name, Value: v.Text})
			out = append(out, Option{Kind: Narrow, Function: f, Place: stop.Place, Expression: name, Instead: v.Text, Other: true, say: m,
				call: pdb(fmt.Sprintf("condition %s %s != %s", stop.breakpoint, name, v.Text))})
		}
		for _, literal := range n.testLiterals() {
			if unquoted(literal) == unquoted(v.Text) || !isLiteral(v.Text) || isNumber(literal) != isNumber(v.Text) {
				continue
			}
			condition := name + " == " + literal
			m := say(fmt.Sprintf(n.words("The test also uses `%s`. I let the breakpoint stop only if `%s` is that.", "I am more interested in `%s`, which is in the test. I stop only if `%s` has this value."), literal, name))
			out = append(out, Option{Kind: Narrow, Function: f, Place: stop.Place, Expression: name, Instead: literal, say: n.afterLearned(m),
				call: pdb(fmt.Sprintf("condition %s %s", stop.breakpoint, condition))})
		}
	}
	return out
}

var stackEntry = regexp.MustCompile(`(?m)^[> ] *(\S+\.py)\((\d+)\)(\w+)\(\)`)

// calls returns the calls in a printed stack: the names of the caller and the called function.
func calls(stack string) [][2]string {
	var out [][2]string
	frames := stackEntry.FindAllStringSubmatch(stack, -1)
	for i := range frames[min(1, len(frames)):] {
		out = append(out, [2]string{frames[i][3], frames[i+1][3]})
	}
	return out
}

// learnedStack says what calls the function in which the program is paused.
func (n *Notes) learnedStack(text string) message {
	frames := stackEntry.FindAllStringSubmatch(text, -1)
	if len(frames) < 2 {
		return message{}
	}
	caller, callee := frames[len(frames)-2], frames[len(frames)-1]
	if strings.HasPrefix(caller[1], "/") {
		return message{}
	}
	return say(fmt.Sprintf(n.words("`%[1]s` is called by `%[2]s`, in line %[3]s of %[4]s.", "The call comes from `%[2]s` (%[4]s, line %[3]s)."), callee[3], caller[3], caller[2], caller[1]),
		schemas.Claim{Kind: schemas.ClaimCalls, Caller: caller[3], Function: callee[3]})
}

// maxSkip is the highest number of hits that the agent skips at once.
const maxSkip = 9

// skipOptions returns the numbers of hits that the agent can skip at the breakpoint at which the program is paused: one, or a number
// in a line that was shown.
func (n *Notes) skipOptions(stop Stop) []Option {
	if stop.breakpoint == "" || n.Skips() || !slices.ContainsFunc(n.points, func(p schemas.Breakpoint) bool {
		return p.File == stop.File && p.Line == stop.Line && !p.Temporary && p.Condition == ""
	}) {
		return nil
	}
	var out []Option
	for count := 1; count <= maxSkip; count++ {
		if count > 1 && !n.showsNumber(count) {
			continue
		}
		m := n.learned()
		if len(stop.Values) > 0 {
			m = m.then(say(n.words("That does not tell me the reason yet.", "I do not see the reason here yet.", "That alone does not explain the failure.")))
		}
		hits := "next hit"
		if count > 1 {
			hits = fmt.Sprintf("next %d hits", count)
		}
		m = m.then(say(fmt.Sprintf(n.words("I skip the %s and look at a later one.", "I let the breakpoint ignore the %s."), hits)))
		out = append(out, Option{Kind: Skip, Count: count, say: m, call: pdb(fmt.Sprintf("ignore %s %d", stop.breakpoint, count))})
	}
	return out
}

// Skips reports whether the last command lets a breakpoint ignore hits.
func (n *Notes) Skips() bool { return strings.HasPrefix(argument(n.last, "command"), "ignore ") }

// Narrows reports whether the last command gives a breakpoint a condition.
func (n *Notes) Narrows() bool { return strings.HasPrefix(argument(n.last, "command"), "condition ") }

// knowsCaller reports whether the traceback of the test goes through a function, or the test calls it.
func (n *Notes) knowsCaller(f Function) bool {
	return slices.Contains(n.TestCalls(), f.Name) || slices.ContainsFunc(n.Test.Frames, func(p Place) bool {
		g, ok := n.FunctionAt(p)
		return ok && g.Place == f.Place
	})
}

// isNumber reports whether a literal is a number.
func isNumber(literal string) bool { return strings.Trim(literal, "-.0123456789") == "" }

// isLiteral reports whether a printed value is a string or a number.
func isLiteral(value string) bool {
	tokens, ok := tokenize(value)
	return ok && len(tokens) == 1 && (tokens[0].kind == stringToken || tokens[0].kind == numberToken)
}

// testLiterals returns the strings and numbers in the shown lines of the test.
func (n *Notes) testLiterals() []string {
	var out []string
	for _, line := range n.testLines() {
		tokens, _ := tokenize(n.text(Place{n.Test.At.File, line}))
		for _, t := range tokens {
			if (t.kind == stringToken || t.kind == numberToken) && len(t.text) <= 40 && !strings.Contains(t.text, "`") && !slices.Contains(out, t.text) && len(out) < maxLiterals {
				out = append(out, t.text)
			}
		}
	}
	return out
}

var constantName = regexp.MustCompile(`^[A-Z][A-Z0-9_]+$`)

// testConstants returns the names in the shown lines of the test that look like constants.
func (n *Notes) testConstants() []string {
	if n.Test == nil {
		return nil
	}
	var out []string
	for _, line := range n.testLines() {
		tokens, _ := tokenize(n.text(Place{n.Test.At.File, line}))
		for _, t := range tokens {
			if t.kind == nameToken && constantName.MatchString(t.text) && !slices.Contains(out, t.text) {
				out = append(out, t.text)
			}
		}
	}
	return out
}

// hasParameters reports whether a function has parameters other than self.
func (n *Notes) hasParameters(f Function) bool {
	return len(slices.DeleteFunc(n.parameters(f), func(name string) bool { return name == "self" || name == "cls" })) > 0
}

// parameters returns the names of the parameters of a function.
func (n *Notes) parameters(f Function) []string {
	return parameters(n.join(f.File, n.body(f)[:n.headEnd(f)-f.Line+1]))
}

func (n *Notes) sayPrint(expression string) message {
	return say(fmt.Sprintf(n.words("What is `%s`?", "I print `%s`.", "I check `%s`.", "Next I look at `%s`."), expression))
}

// nextOption runs the statement at a stop. The command n could stop in a later line of it.
func (n *Notes) nextOption(f Function, stop Stop) Option {
	o := Option{Kind: Next, Function: f, Place: stop.Place, say: n.afterLearned(n.sayNext(stop)), call: pdb("n")}
	_, st, ok := n.statementAt(stop.Place)
	last := len(n.Stops) - 1
	again := last > 0 && n.Stops[last-1].Place == stop.Place && n.Stops[last-1].Event == "line" && stop.Event == "line" && n.follows(last-1) // in a comprehension
	if !ok || st.head() == st.last && !again {
		return o
	}
	if st.kind == returnStatement {
		o.call = pdb("r")
	}
	for _, next := range n.statements(f) {
		if next.head() > st.last && n.indent(Place{f.File, next.head()}) == n.indent(Place{f.File, st.head()}) && isSimple(st) {
			o.call = pdb(fmt.Sprintf("until %d", next.Line))
			break
		}
	}
	return o
}

func (n *Notes) sayNext(stop Stop) message {
	return say(fmt.Sprintf(n.words("I run line %d and look at its effect.", "I step over line %d.", "I let line %d run."), stop.Line))
}
