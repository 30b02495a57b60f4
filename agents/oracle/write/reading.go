package write

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/agents/testcmd"
	"github.com/tracesmith/tracesmith/schemas"
)

// reference is a name of the program that a shown text uses.
type reference struct {
	name   string
	caller string // the function or the id of the test that calls it, or the name that is set to it
	isSet  bool
}

// references returns the names that the test and the functions that were read call, the latest function first, and
// what those names are set to.
func (n *Notes) references() []reference {
	var out []reference
	add := func(r reference) {
		if !slices.ContainsFunc(out, func(known reference) bool { return known.name == r.name }) {
			out = append(out, r)
		}
	}
	for _, f := range n.Functions() {
		if !testcmd.IsTestFile(f.File) && n.isRead(f) && !f.IsClass {
			for _, name := range called(n.join(f.File, n.body(f)[1:])) {
				add(reference{name: name, caller: f.Name})
			}
		}
	}
	inTest := n.TestCalls()
	for _, name := range inTest {
		add(reference{name: name, caller: n.Test.ID})
	}
	for _, f := range n.Functions() {
		if testcmd.IsTestFile(f.File) && slices.Contains(inTest, f.Name) && n.isRead(f) && !f.IsClass {
			for _, name := range called(n.join(f.File, n.body(f)[1:])) {
				add(reference{name: name, caller: f.Name})
			}
		}
	}
	for i := 0; i < len(out); i++ { // out grows
		if at, ok := n.setting(out[i].name); ok {
			if m := alias.FindStringSubmatch(n.lines[at.File][at.Line]); m != nil {
				add(reference{name: m[1], caller: out[i].name, isSet: true})
			}
		}
	}
	return out
}

// TestCalls returns the names that the failing test calls, in order, as far as it was shown.
func (n *Notes) TestCalls() []string {
	return called(n.join(n.Test.At.File, n.testLines()))
}

// alias matches a line that gives a name another name.
var alias = regexp.MustCompile(`^\s*\w+\s*=\s*(\w+)\s*(?:#.*)?$`)

// setting returns the shown line outside of tests at which a module or class sets a name.
func (n *Notes) setting(name string) (Place, bool) {
	for _, file := range slices.Sorted(maps.Keys(n.lines)) {
		if testcmd.IsTestFile(file) {
			continue
		}
		for _, line := range slices.Sorted(maps.Keys(n.lines[file])) {
			rest, ok := strings.CutPrefix(n.text(Place{file, line}), name)
			rest = strings.TrimLeft(rest, " ")
			if ok && strings.HasPrefix(rest, "=") && !strings.HasPrefix(rest, "==") && indentOf(n.lines[file][line]) <= 4 {
				return Place{file, line}, true
			}
		}
	}
	return Place{}, false
}

func (n *Notes) join(file string, lines []int) string {
	var b strings.Builder
	for _, line := range lines {
		b.WriteString(n.lines[file][line])
		b.WriteByte('\n')
	}
	return b.String()
}

// readOptions returns what the agent can search for and read: functions that shown texts call, places in the
// traceback, values of modules, and definitions that were listed.
func (n *Notes) readOptions() []Option {
	var out []Option
	shown := n.Functions()
	for _, r := range n.references() {
		out = append(out, n.referenceOptions(r, shown)...)
	}
	for i, at := range slices.Backward(n.Test.Frames) {
		if testcmd.IsTestFile(at.File) || n.text(at) != "" {
			continue
		}
		m := say(fmt.Sprintf("The traceback goes through line %d of %s.", at.Line, at.File))
		if i == len(n.Test.Frames)-1 {
			m = say(fmt.Sprintf("The traceback ends in line %d of %s.", at.Line, at.File))
		}
		out = append(out, Option{Kind: ReadBody, Place: at, Last: at.Line + LinesAfter, say: n.afterLearned(m.then(say(n.words("I read the code around it.", "I look at that code.")))),
			call: schemas.NewToolCall("view", map[string]any{"path": at.File, "start": max(1, at.Line-LinesBefore), "end": at.Line + LinesAfter})})
	}
	for _, r := range n.constants() {
		out = append(out, n.settingOptions(r)...)
	}
	if slices.Contains(n.tools, "listdir") && !slices.ContainsFunc(shown, func(f Function) bool { return !testcmd.IsTestFile(f.File) }) {
		m := n.afterLearned(say(n.words("What files are there? I list the repository.", "I do not know this repository, so I list its files.")))
		out = append(out, Option{Kind: List, say: m, call: schemas.NewToolCall("listdir", map[string]any{"depth": 2})})
	}
	out = append(out, n.outlineOptions()...)
	for _, f := range shown {
		if !testcmd.IsTestFile(f.File) && !f.IsClass && n.isRead(f) {
			if o, ok := n.readOnOption(f); ok {
				out = append(out, o)
			}
		}
	}
	for _, f := range shown { // methods of a class, and neighbors, that a search or a view has shown
		if !testcmd.IsTestFile(f.File) && !f.IsClass && !n.isRead(f) {
			out = append(out, n.readOption(f, reference{}, false))
		}
	}
	return out
}

// referenceOptions returns how the agent can get to the definition of a name.
func (n *Notes) referenceOptions(r reference, shown []Function) []Option {
	var out []Option
	var found []Function
	for _, f := range shown {
		if f.Name == r.name && !testcmd.IsTestFile(f.File) {
			found = append(found, f)
		}
	}
	for _, f := range found {
		if !n.isRead(f) {
			out = append(out, n.readOption(f, r, len(found) > 1))
		}
	}
	isHelper := false
	for _, f := range shown {
		if f.Name == r.name && testcmd.IsTestFile(f.File) && r.caller == n.Test.ID {
			isHelper = true
			if !n.isRead(f) {
				out = append(out, n.readOption(f, r, false))
			}
		}
	}
	if len(found) > 0 || commonNames[r.name] || isHelper {
		return out
	}
	search := schemas.NewToolCall("grep", map[string]any{"pattern": fmt.Sprintf(`(def|class) %s\b`, regexp.QuoteMeta(r.name)), "include": "*.py"})
	if n.done[callKey(search)] {
		return n.settingOptions(r)
	}
	return append(out, Option{Kind: Find, Function: Function{Name: r.name}, say: n.sayFind(r), call: search})
}

// constants returns the names in capitals that the functions that were read use.
func (n *Notes) constants() []reference {
	var out []reference
	for _, f := range n.Functions() {
		if testcmd.IsTestFile(f.File) || !n.isRead(f) || f.IsClass {
			continue
		}
		tokens, _ := tokenize(n.join(f.File, n.body(f)[1:]))
		for _, t := range tokens {
			isConstant := t.kind == nameToken && len(t.text) > 2 && strings.ToUpper(t.text) == t.text && strings.Trim(t.text, "_0123456789") != ""
			if isConstant && !slices.ContainsFunc(out, func(r reference) bool { return r.name == t.text }) {
				out = append(out, reference{name: t.text, caller: f.Name})
			}
		}
	}
	return out
}

// settingOptions returns the search for the line that sets a name, and what follows that line.
func (n *Notes) settingOptions(r reference) []Option {
	if at, ok := n.setting(r.name); ok {
		if n.IsShown(Place{at.File, at.Line + 1}) {
			return nil
		}
		return []Option{{Kind: ReadBody, Place: at, Last: at.Line + maxBody, say: n.afterLearned(say(fmt.Sprintf(n.words("I read `%s`.", "I look at `%s`."), r.name))),
			call: schemas.NewToolCall("view", map[string]any{"path": at.File, "start": at.Line, "end": at.Line + maxBody})}}
	}
	m := say(fmt.Sprintf(n.words("Is `%s` set somewhere?", "`%s` may be set elsewhere. I search for that."), r.name))
	if strings.ToUpper(r.name) == r.name {
		m = say(fmt.Sprintf(n.words("`%s` uses `%s`. Where is that set?", "`%s` looks something up in `%s`. I search for it."), r.caller, r.name))
	}
	return []Option{{Kind: FindSetting, Function: Function{Name: r.name}, say: n.afterLearned(m),
		call: schemas.NewToolCall("grep", map[string]any{"pattern": fmt.Sprintf(`^\s*%s\s*=`, regexp.QuoteMeta(r.name)), "include": "*.py"})}}
}

// readOnOption returns the option to read the lines after the last one of a function that was shown in part.
func (n *Notes) readOnOption(f Function) (Option, bool) {
	body := n.body(f)
	last := body[len(body)-1]
	for n.lines[f.File][last+1] != "" || n.isBlank(Place{f.File, last + 1}) { // shown, but not part of the function
		last++
		if n.text(Place{f.File, last}) != "" {
			return Option{}, false
		}
	}
	if n.ends[f.File] == last {
		return Option{}, false
	}
	m := say(fmt.Sprintf("`%s` may have more lines than I have seen. I read on from line %d.", f.Name, last+1))
	if n.last.ToolCall.Name == "view" && argument(n.last, "path") == f.File {
		m = say(fmt.Sprintf(n.words("`%s` may go on below. I read on.", "I read on, in case `%s` has more lines."), f.Name))
	}
	return Option{Kind: ReadBody, Function: f, Place: Place{f.File, last + 1}, Last: last + 1 + maxBody, say: n.afterLearned(m),
		call: schemas.NewToolCall("view", map[string]any{"path": f.File, "start": last + 1, "end": last + 1 + maxBody})}, true
}

// isBlank reports whether a shown line is empty.
func (n *Notes) isBlank(p Place) bool {
	text, shown := n.lines[p.File][p.Line]
	return shown && strings.TrimSpace(text) == ""
}

// outline matches definitions.
const outline = `^\s*(async def|def|class) `

// outlineOptions returns searches for all definitions: in a file of the program that was shown, or everywhere.
func (n *Notes) outlineOptions() []Option {
	var out []Option
	for _, file := range slices.Sorted(maps.Keys(n.lines)) {
		if !testcmd.IsTestFile(file) && strings.HasSuffix(file, ".py") {
			m := say(fmt.Sprintf(n.words("What does %s define? I list that.", "I list the definitions in %s."), file))
			out = append(out, Option{Kind: Outline, Place: Place{File: file}, say: n.afterLearned(m), call: schemas.NewToolCall("grep", map[string]any{"pattern": outline, "path": file, "max_results": 500})})
		}
	}
	m := say(n.words("I need a map of the program: which file defines what?", "To find my way, I list all definitions of the program."))
	return append(out, Option{Kind: Outline, say: n.afterLearned(m), call: schemas.NewToolCall("grep", map[string]any{"pattern": outline, "include": "*.py", "max_results": 500})})
}

// commonNames holds names of functions and methods of Python itself, for which the agent does not search.
var commonNames = wordSet(`abs all any bool bytes bytearray callable chr classmethod dict dir enumerate filter float format frozenset getattr
	hasattr hash hex id input int isinstance issubclass iter len list map max min next object oct open ord pow print property range repr
	reversed round set setattr slice sorted staticmethod str sum super tuple type vars zip append extend insert remove pop clear copy
	count index sort reverse keys values items get update setdefault popitem add discard union join split rsplit strip lstrip rstrip
	replace startswith endswith encode decode lower upper title capitalize find rfind isdigit isalpha isspace partition rpartition
	splitlines zfill read write close readline group groups match search fullmatch sub compile findall finditer
	ValueError TypeError KeyError IndexError AttributeError RuntimeError NotImplementedError Exception StopIteration OSError
	ZeroDivisionError LookupError OverflowError AssertionError UnicodeDecodeError
	assertEqual assertTrue assertFalse assertRaises assertIs assertIn assertIsNone assertIsNotNone assertNotEqual assertNotIn
	assertListEqual assertDictEqual assertIsInstance assertRaisesRegex raises`)

// maxBody is the number of lines that the agent reads of a function whose end is unknown.
const maxBody = 60

// end returns the line up to which the agent reads a function: the last one before the next definition, if that was listed, and not
// behind the end of the file, if that is known.
func (n *Notes) end(f Function) int {
	for _, g := range n.Functions() {
		if g.File == f.File && g.Line > f.Line && g.indent <= f.indent && g.Line-f.Line < 2*maxBody && n.listed[f.File] {
			return g.Line - 1
		}
	}
	if last := n.ends[f.File]; last > f.Line {
		return min(last, f.Line+maxBody)
	}
	return f.Line + maxBody
}

func (n *Notes) readOption(f Function, r reference, ambiguous bool) Option {
	args := map[string]any{"path": f.File, "start": f.Line, "end": n.end(f)}
	m := say(fmt.Sprintf(n.words("I read `%s`.", "I look at `%s` next.", "Now I read `%s`."), f.Name))
	o := Option{Kind: ReadBody, Function: f, Place: f.Place, Last: n.end(f), call: schemas.NewToolCall("view", args)}
	switch {
	case r.name == "":
		reason := n.reason(f)
		o.Unexplained = reason == ""
		if o.Unexplained {
			reason = fmt.Sprintf("I have not read `%s` yet.", f.Name)
			m = say(n.words("I look at it now.", "I do that now.", "I read it next."))
		}
		m = say(reason, f.defines()).then(m)
	case r.isSet && n.last.ToolCall.Name != "grep":
		m = n.sayIsSet(r).then(m)
	case ambiguous:
		m = say(fmt.Sprintf("%s defines one `%s` at line %d.", f.File, f.qualified(), f.Line), f.defines()).then(m)
	case !strings.Contains(argument(n.last, "pattern"), f.Name):
		calls := schemas.Claim{Kind: schemas.ClaimCalls, Caller: r.caller, Function: f.Name}
		m = say(fmt.Sprintf(n.words("%s calls `%s`.", "%s uses `%s`."), n.caller(r), f.Name), calls).then(m)
	}
	o.say = n.afterLearned(m)
	return o
}

// sayIsSet says which name a name is set to.
func (n *Notes) sayIsSet(r reference) message {
	at, _ := n.setting(r.caller)
	return say(fmt.Sprintf("`%s` is another name of `%s`.", r.caller, r.name), schemas.Claim{Kind: schemas.ClaimSource, File: at.File, Line: at.Line, Text: n.text(at)})
}

// reason says why a function that no shown text calls could matter, or "".
func (n *Notes) reason(f Function) string {
	if strings.HasPrefix(f.Name, "__") && f.Class != "" {
		if f.Name == "__init__" {
			return fmt.Sprintf("A new `%s` runs its `__init__`.", f.Class)
		}
		return fmt.Sprintf("Python calls `%s` of `%s` without naming it.", f.Name, f.Class)
	}
	for _, word := range nameWords(f.Name) {
		if slices.Contains(nameWords(testcmd.Function(n.Test.ID)), word) {
			return fmt.Sprintf("`%s` in %s has `%s` in its name, like the test.", f.Name, f.File, word)
		}
	}
	module := strings.TrimSuffix(path.Base(f.File), ".py")
	if words := strings.FieldsFunc(strings.TrimSuffix(path.Base(n.Test.At.File), ".py"), func(r rune) bool { return r == '_' }); slices.Contains(words, module) {
		return fmt.Sprintf("By its name, %s tests %s, which defines `%s`.", n.Test.At.File, f.File, f.Name)
	}
	if n.mentions == nil {
		n.findMentions()
	}
	if by, ok := n.mentions[f.Name]; ok {
		return fmt.Sprintf("`%s` mentions `%s`.", by, f.Name)
	}
	if f.Class != "" && n.classes[f.Class+" "+f.File] {
		return fmt.Sprintf("`%s` is another method of `%s`.", f.Name, f.Class)
	}
	return ""
}

// findMentions notes the names in the functions that were read, each with one of these functions, and the classes of the
// functions.
func (n *Notes) findMentions() {
	n.mentions, n.classes = map[string]string{}, map[string]bool{}
	for _, f := range n.Functions() {
		if testcmd.IsTestFile(f.File) || f.IsClass || !n.isRead(f) {
			continue
		}
		tokens, _ := tokenize(n.join(f.File, n.body(f)[1:]))
		for _, t := range tokens {
			if t.kind == nameToken {
				n.mentions[t.text] = f.Name
			}
		}
		if f.Class != "" {
			n.classes[f.Class+" "+f.File] = true
		}
	}
}

// nameWords returns the words of a name that have at least four letters, in lower case.
func nameWords(name string) []string {
	var out []string
	for _, word := range nameWord.FindAllString(name, -1) {
		if word = strings.ToLower(word); len(word) >= 4 && word != "test" && word != "tests" {
			out = append(out, word)
		}
	}
	return out
}

var nameWord = regexp.MustCompile(`[A-Z]?[a-z]+|[A-Z]+`)

// caller names the caller of a reference in a sentence.
func (n *Notes) caller(r reference) string {
	if r.caller == n.Test.ID {
		return "The test"
	}
	return "`" + r.caller + "`"
}

func (n *Notes) sayFind(r reference) message {
	if r.isSet {
		return n.sayIsSet(r).then(say("I search for its definition."))
	}
	calls := schemas.Claim{Kind: schemas.ClaimCalls, Caller: r.caller, Function: r.name}
	return say(fmt.Sprintf(n.words("%s calls `%s`.", "%s uses `%s`."), n.caller(r), r.name), calls).then(
		say(n.words("I search for its definition.", "Where is it defined?", "I look for it.")))
}
