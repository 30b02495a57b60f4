package synth

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// failureSummary is what one failure shows about the program, without the test around it.
type failureSummary struct {
	failure   Failure
	test      string   // short name
	names     []string // how a title may name the expression under test, the most informative one first
	call      string   // the expression under test, on one line; "" if it does not fit into a sentence
	short     string   // call without its arguments: "f(...)"; "" if call is not a call
	code      string   // code that shows the failure without the test; "" if it needs the test
	body      string   // code without its imports
	got       string   // the value of call
	want      string   // the expected value
	wantTruth string   // "true" or "false": what call should be
	raised    string   // the exception that call raised, with its message
	wantError string   // the exception that call should have raised
	message   string   // the message of any other assertion
}

// Limits for parts of texts, in characters.
const (
	maxValue = 200 // a value or a message
	maxCall  = 120 // code within a sentence
	maxTitle = 100
)

// summarize returns the summary of a failure.
func summarize(f Failure) failureSummary {
	s := failureSummary{failure: f, test: shortName(f.Test)}
	scene := f.Scene
	if scene == nil {
		scene = &Scene{}
	}
	if line := oneLine(scene.Call); utf8.RuneCountInString(line) <= maxCall && !strings.Contains(line, "`") && !strings.Contains(line, "self.") && !strings.HasPrefix(line, "return ") {
		s.call, s.short = line, clip(scene.Short)
		s.names = namesFor(s.call, s.short, scene.Before)
	}
	if scene.SelfContained {
		s.body = strings.Join(append(append([]string{}, scene.Before...), scene.Call), "\n")
		s.code = s.body
		if len(scene.Imports) > 0 {
			s.code = strings.Join(scene.Imports, "\n") + "\n\n" + s.body
		}
	}
	message := clip(firstLine(f.Message))
	switch {
	case scene.Relation == relationRaises && f.asserts() && strings.Contains(strings.ToLower(f.Message), "not raise"):
		s.wantError = clip(scene.Raises)
	case !f.asserts():
		s.raised = strings.TrimSuffix(strings.TrimSuffix(f.Type+": "+message, ": "), ".")
		if scene.Relation == relationRaises {
			s.wantError = clip(scene.Raises)
		} else {
			s.want = clip(scene.Want)
		}
	case scene.Relation == relationEqual && clip(f.Left) != clip(f.Right):
		s.got, s.want = clip(f.Left), clip(f.Right)
		if scene.Swapped {
			s.got, s.want = s.want, s.got
		}
	case scene.Relation == relationEqual && scene.Want != "" && f.Left == "":
		s.want = clip(scene.Want)
	case scene.Relation == relationTrue || scene.Relation == relationFalse:
		s.wantTruth = scene.Relation
	default:
		s.message = message
	}
	if s.call == "" && f.asserts() {
		s.message = message
	}
	if lines := strings.Split(f.Message, "\n"); s.message != "" && len(lines) > 1 { // pytest's "assert False" says little
		if where, ok := strings.CutPrefix(lines[1], " +  "); ok && strings.HasPrefix(where, "where ") {
			s.message = clip(lines[0] + ", " + where)
		}
	}
	return s
}

// oneLine returns code without line ends. It adds a space between two lines unless a bracket is there.
func oneLine(code string) string {
	lines := strings.Split(code, "\n")
	out := strings.TrimSpace(lines[0])
	for _, line := range lines[1:] {
		line = strings.TrimSpace(line)
		if strings.IndexAny(line, ")]}") == 0 {
			out = strings.TrimSuffix(out, ",")
		} else if !strings.HasSuffix(out, "(") && !strings.HasSuffix(out, "[") && !strings.HasSuffix(out, "{") {
			out += " "
		}
		out += line
	}
	return out
}

var privateName = regexp.MustCompile(`(?:^|\W)_[A-Za-z]\w*`)

// isPublic reports whether a user of the program could have written the expression under test.
func (s failureSummary) isPublic() bool {
	return !privateName.MatchString(quoted.ReplaceAllString(s.call, `""`))
}

// asserts reports whether a failure is a failed assertion of a test, rather than an exception
// of the program.
func (f Failure) asserts() bool {
	if f.Type != "AssertionError" && f.Type != "Failed" {
		return false
	}
	return len(f.Frames) == 0 || isTest(f.Frames[len(f.Frames)-1].File)
}

// isInformative reports whether a summary says enough for a text about the program's behavior.
func (s failureSummary) isInformative() bool {
	return s.call != "" && (s.got != "" || s.wantTruth != "" || s.raised != "" || s.wantError != "" || s.want != "")
}

// verb returns the verb between call and its value.
func (s failureSummary) verb() string {
	if s.short != "" && strings.HasSuffix(s.call, ")") {
		return "returns"
	}
	return "is"
}

// title returns the first candidate for a title that is short enough.
func (s failureSummary) title() string {
	for _, t := range s.titleCandidates() {
		if utf8.RuneCountInString(t) <= maxTitle {
			return t
		}
	}
	return "`" + s.test + "` fails"
}

// titleCandidates returns possible titles, the most informative one first.
func (s failureSummary) titleCandidates() []string {
	kind, _, _ := strings.Cut(s.raised, ":")
	var out []string
	for _, call := range s.names {
		call = "`" + call + "`"
		switch {
		case s.wantError != "" && s.raised != "":
			out = append(out, call+" raises `"+kind+"` instead of `"+s.wantError+"`")
		case s.wantError != "":
			out = append(out, call+" does not raise `"+s.wantError+"`")
		case s.raised != "":
			out = append(out, call+" fails with `"+s.raised+"`", call+" fails with `"+kind+"`")
		case s.wantTruth != "":
			out = append(out, call+" should be "+s.wantTruth)
		case s.got != "":
			out = append(out, call+" "+s.verb()+" `"+s.got+"` instead of `"+s.want+"`")
		default:
			out = append(out, call+" should be `"+s.want+"`")
		}
	}
	for _, call := range s.names {
		if s.got != "" {
			out = append(out, "Wrong value of `"+call+"`")
		}
	}
	return out
}

// isComplete reports whether a title says everything that outcome says.
func (s failureSummary) isComplete(title string) bool {
	if !slices.Contains(s.names, s.call) {
		return false
	}
	for _, part := range []string{s.call, s.raised, s.got, s.want, s.wantError} {
		if part != "" && !strings.Contains(title, "`"+part+"`") {
			return false
		}
	}
	return true
}

// expected returns a sentence about the expected value; "" if it is unknown.
func (s failureSummary) expected(p picker) string {
	if s.want == "" {
		return ""
	}
	return p.choose("expected", "I expected `"+s.want+"`.", "The expected value is `"+s.want+"`.")
}

// outcome returns a sentence about what the last line of the code does and should do.
func (s failureSummary) outcome(p picker) string {
	last := "The last line"
	if !strings.Contains(s.body, "\n") {
		last = "This"
	}
	switch {
	case s.wantError != "" && s.raised != "":
		return p.choose("outcome", "It raises `"+s.raised+"`, but it should raise `"+s.wantError+"`.", "I get `"+s.raised+"` instead of `"+s.wantError+"`.")
	case s.wantError != "":
		return p.choose("outcome", "This should raise `"+s.wantError+"`, but it runs without an error.", "I expected `"+s.wantError+"` here, but no error is raised.",
			"No error. It should be `"+s.wantError+"`.")
	case s.raised != "":
		text := p.choose("outcome", "It fails with `"+s.raised+"`.", last+" raises `"+s.raised+"`.", "This ends in `"+s.raised+"`.")
		return strings.TrimSpace(text + " " + s.expected(p))
	case s.wantTruth != "":
		return p.choose("outcome", last+" should be "+s.wantTruth+", but it is not.", "I expected this to be "+s.wantTruth+", and it is not.", "The result should be "+s.wantTruth+" here. It is not.")
	case s.got != "":
		return p.choose("outcome", "I get `"+s.got+"`, but I expected `"+s.want+"`.", "Expected: `"+s.want+"`\nActual: `"+s.got+"`",
			"This gives `"+s.got+"`. It should be `"+s.want+"`.", last+" gives `"+s.got+"` instead of `"+s.want+"`.", "Got `"+s.got+"`, expected `"+s.want+"`.")
	}
	return "The result should be `" + s.want + "`, but it is not."
}

// maxLine is the length of the longest first line of a note or a question, in characters.
const maxLine = 140

// nameWithin returns how a title names the expression under test, as code, without its arguments if it is too long; ""
// if that is not possible.
func (s failureSummary) nameWithin(most int) string {
	for _, call := range s.names {
		if utf8.RuneCountInString(call) <= most {
			return "`" + call + "`"
		}
	}
	return ""
}

// noteTitle returns the summary in the terse style of a developer's note, and what does not fit into its first line.
func (s failureSummary) noteTitle(p picker) (title, rest string) {
	call := s.nameWithin(maxLine)
	switch {
	case s.wantError != "" && s.raised != "":
		title = call + ": " + s.raised + ", should be " + s.wantError
	case s.wantError != "":
		title = p.choose("brief", call+" does not raise "+s.wantError, call+" should raise "+s.wantError)
	case s.raised != "":
		title = p.choose("brief", call+": "+s.raised, call+" raises "+s.raised)
	case s.wantTruth != "":
		title = call + " should be " + s.wantTruth
	case s.got != "":
		title = p.choose("brief", call+": got `"+s.got+"`, want `"+s.want+"`", call+" gives `"+s.got+"`, should be `"+s.want+"`")
	default:
		title = call + " should be `" + s.want + "`"
	}
	if utf8.RuneCountInString(title) <= maxLine {
		return title, ""
	}
	kind, _, _ := strings.Cut(s.raised, ":")
	call = s.nameWithin(maxTitle)
	switch {
	case call == "":
		return "", ""
	case s.raised != "":
		return call + p.choose("brief", " fails: ", ": ") + kind, sentences("The message is `"+strings.TrimPrefix(s.raised, kind+": ")+"`.", s.expected(p))
	case s.got != "":
		return call + ": wrong value", "Got:  `" + s.got + "`\nWant: `" + s.want + "`"
	}
	return call + " is wrong", s.outcome(p)
}

// asksForWant reports whether the question is whether the expected behavior should occur, rather than whether the
// actual one should.
func (s failureSummary) asksForWant() bool { return s.got == "" && s.raised == "" }

// questionTitle returns the summary as a question on one line, and what does not fit into it.
func (s failureSummary) questionTitle(p picker) (title, rest string) {
	call := s.nameWithin(maxTitle)
	kind, _, _ := strings.Cut(s.raised, ":")
	switch {
	case call == "":
	case s.wantError != "" && s.raised != "":
		title = "Why does " + call + " raise `" + kind + "` and not `" + s.wantError + "`?"
	case s.wantError != "":
		title = p.choose("ask", "Shouldn't "+call+" raise `"+s.wantError+"`?", "Why doesn't "+call+" raise `"+s.wantError+"`?")
	case s.raised != "":
		title = p.choose("ask", "Why does "+call+" raise `"+kind+"`?", "Is "+call+" supposed to raise `"+kind+"`?", "`"+kind+"` from "+call+": is that expected?")
	case s.wantTruth != "":
		title = p.choose("ask", "Shouldn't "+call+" be "+s.wantTruth+"?", "Why isn't "+call+" "+s.wantTruth+"?")
	case s.got != "" && s.verb() == "returns":
		title = p.choose("ask", "Why does "+call+" return `"+s.got+"`?", "Is "+call+" supposed to return `"+s.got+"`?", "Should "+call+" really return `"+s.got+"`?")
	case s.got != "":
		title = p.choose("ask", "Why is "+call+" `"+s.got+"`?", "Should "+call+" really be `"+s.got+"`?")
	default:
		title = "Shouldn't " + call + " be `" + s.want + "`?"
	}
	if s.got != "" && utf8.RuneCountInString(title) > maxLine {
		return p.choose("ask", "Is the value of "+call+" right?", "Can the value of "+call+" be right?"), "I get `" + s.got + "`."
	}
	return title, ""
}

// shortName returns a test's name without its file, class and parameters.
func shortName(id string) string {
	name, _, isParametrized := strings.Cut(id, "[")
	file := path.Base(name[:max(0, strings.Index(name, "::"))])
	name = strings.TrimPrefix(name[strings.LastIndex(name, "::")+1:], ":")
	if isParametrized || name == file { // pytest names the doctest of a text file after the file
		return name
	}
	return name[strings.LastIndexByte(name, '.')+1:]
}

// clip shortens text to maxValue characters, and replaces backticks, which would end a code span.
func clip(text string) string {
	text = strings.ReplaceAll(strings.TrimSpace(text), "`", "'")
	if utf8.RuneCountInString(text) <= maxValue {
		return text
	}
	return string([]rune(text)[:maxValue-1]) + "…"
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}

var bindings = regexp.MustCompile(`(?m)^\s*(?:(?:async )?(?:def|class|for|with .* as) )?([A-Za-z_]\w*(?:, *[A-Za-z_]\w*)*) *(?:[-+*/|&]?=[^=]|\(.*:|:| in )`)

// namesFor returns how a title may name an expression: without variables that only the code before it explains.
func namesFor(call, short string, before []string) []string {
	bound := map[string]bool{}
	for _, m := range bindings.FindAllStringSubmatch(strings.Join(before, "\n"), -1) {
		for _, name := range strings.Split(m[1], ",") {
			bound[strings.TrimSpace(name)] = true
		}
	}
	explained := func(text string) bool {
		for _, m := range variable.FindAllStringSubmatch(quoted.ReplaceAllString(text, `""`), -1) {
			if bound[m[1]] && m[2] == "" { // m[2] follows the name of an argument
				return false
			}
		}
		return true
	}
	var out []string
	for _, text := range []string{call, short} {
		if text == "" || slices.Contains(out, text) {
			continue
		}
		if explained(text) {
			out = append(out, text)
			continue
		}
		if function, _, isCall := strings.Cut(text, "("); isCall && slices.Contains(builtinFunctions, function) {
			out = append(out, call) // len(...) would not say what it is about
			break
		}
		if brief := innerArguments.ReplaceAllStringFunc(text, func(arguments string) string {
			if explained(arguments) {
				return arguments
			}
			return "(...)"
		}); explained(brief) {
			out = append(out, brief)
			continue
		}
		// The name of a method says enough without its object.
		object, method, ok := strings.Cut(text, ".")
		if ok && bound[object] && methodCall.MatchString(method) && explained(method) {
			out = append(out, method)
		}
	}
	return out
}

// builtinFunctions are functions of Python that are often called on the result of a program.
var builtinFunctions = []string{"bool", "bytes", "dict", "float", "getattr", "hasattr", "hash", "int", "isinstance", "iter", "len", "list", "next", "repr", "set", "sorted", "str", "sum", "tuple", "type"}

var (
	variable       = regexp.MustCompile(`(?:^|[^\w.])([A-Za-z_]\w*)( *=[^=])?`)
	innerArguments = regexp.MustCompile(`\([^()]*\)`)
	quoted         = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'`)
	methodCall     = regexp.MustCompile(`^[A-Za-z]\w*\(.*\)$`)
)
