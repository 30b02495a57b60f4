package synth

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// The kinds of issue texts.
const (
	TextMixed    = "mixed"    // one of the next four, by the seed
	TextSymptom  = "symptom"  // a user's report: code, the result and the expected result
	TextNote     = "note"     // a developer's note
	TextQuestion = "question" // a question by a user who is not sure whether it is a bug
	TextTestRun  = "test-run" // the command that fails, and the tests
	TextReporter = "reporter" // a user's report, written by a model
)

// Texts lists the kinds of issue texts, the default first.
var Texts = []string{TextMixed, TextSymptom, TextNote, TextQuestion, TextTestRun, TextReporter}

// TextVersion is the version of the wordings. Increment it with every change to them.
const TextVersion = 9

// mixture lists the kinds that TextMixed chooses from. How often a kind occurs is its weight.
var mixture = []string{TextSymptom, TextSymptom, TextSymptom, TextSymptom, TextNote, TextNote, TextQuestion, TextQuestion, TextTestRun, TextTestRun}

// issue holds the facts that a text may reveal. None of them come from the gold patch.
type issue struct {
	Command  string
	Failures []Failure
	Failing  []string // all failing tests
	Pick     picker   // chooses among wordings
}

// kindOf returns the kind of the task's text: want, or the kind that p chooses if want is TextMixed. If
// there is no text of that kind, it falls back to TextNote and then to TextTestRun.
func kindOf(p picker, want string, texts map[string]string) string {
	if want == TextMixed {
		want = p.choose("kind", mixture...)
	}
	for _, kind := range []string{want, TextNote, TextTestRun} {
		if texts[kind] != "" {
			return kind
		}
	}
	return TextTestRun
}

// testRun returns a report about the tests that fail.
func (i issue) testRun() string {
	const listed = 5
	var lines []string
	shown := 0
	errors, says := i.errors()
	tests := i.Failing
	if len(errors) > 0 { // the other tests may fail in other ways
		tests = slices.DeleteFunc(slices.Clone(tests), func(id string) bool { return errors[id] == "" })
		slices.SortStableFunc(tests, func(a, b string) int { return says[b] - says[a] })
	}
	failing := i.failingLines(tests, errors)
	if failing != "" && says[tests[0]] == 0 {
		errors[tests[0]] = "AssertionError" // the statement follows
	}
	for rest := tests; len(rest) > 0 && len(lines) < listed; {
		name, n := i.listName(rest)
		line := "- `" + name + "`"
		if n > 1 {
			line += fmt.Sprintf(" (%d cases)", n)
		}
		if k := slices.IndexFunc(rest[:n], func(id string) bool { return errors[id] != "" }); k >= 0 {
			line += ": `" + errors[rest[k]] + "`"
		}
		lines, rest, shown = append(lines, line), rest[n:], shown+n
	}
	if more := len(i.Failing) - shown; more > 0 {
		lines = append(lines, "- and "+pluralOf(more, "one more test", "%d more tests"))
	}
	first := ""
	if len(i.Failing) > 0 {
		first = i.Failing[0]
	}
	if len(tests) > 0 {
		first = tests[0]
	}
	title, lead := "`"+shortName(first)+"` and "+plural(len(i.Failing)-1, "other test", "other tests")+" fail", i.Pick.choose("lead", "`"+i.Command+"` fails:", "These tests fail with `"+i.Command+"`:", "Failures of `"+i.Command+"`:")
	if len(i.Failing) > 1 && i.casesOfOneTest() {
		title = fmt.Sprintf("%d cases of `%s` fail", len(i.Failing), shortName(first))
	}
	if file := i.file(); file != "" {
		title = i.Pick.choose("named", title, fmt.Sprintf("%d tests fail in %s", len(i.Failing), file))
	}
	list := strings.Join(lines, "\n")
	if len(i.Failing) == 1 {
		name := strings.TrimPrefix(lines[0], "- ")
		name, text, hasText := strings.Cut(name, ": ")
		title, list = "`"+shortName(i.Failing[0])+"` fails", ""
		if lead = name + " fails with `" + i.Command + "`."; hasText {
			lead = i.Pick.choose("lead", name+" fails (`"+i.Command+"`): "+text, "`"+i.Command+"` reports for "+name+": "+text, "With `"+i.Command+"`, "+name+" fails: "+text)
		}
	}
	return paragraphs(title, lead, list, failing, i.closing())
}

// errors returns the errors of the tests, as far as they are known, and which of them have a message. Instead of the name of
// an exception without one, it returns the statement that failed.
func (i issue) errors() (errors map[string]string, says map[string]int) {
	errors, says = map[string]string{}, map[string]int{}
	for _, f := range i.Failures {
		text := strings.TrimSuffix(clip(f.errorLine()), ":")
		if text != f.Type {
			says[f.Test] = 1
		} else if line := oneLine(f.Statement); f.asserts() && line != "" && utf8.RuneCountInString(line) <= maxCall && !strings.Contains(line, "`") {
			text = line
		}
		if text != "" {
			errors[f.Test] = text
		}
	}
	return errors, says
}

// failingLines returns the lines of the test at which the first of these tests fails, for errors that say little without
// them; "" if they are unknown or if errors shows them.
func (i issue) failingLines(tests []string, errors map[string]string) string {
	k := slices.IndexFunc(i.Failures, func(f Failure) bool { return len(tests) > 0 && f.Test == tests[0] })
	if k < 0 || !i.Failures[k].asserts() || i.Failures[k].excerpt() == "" || i.Failures[k].excerpt() == errors[tests[0]] {
		return ""
	}
	where := i.Pick.choose("line", "It fails here:", "The failing line:")
	if len(i.Failing) > 1 {
		where = i.Pick.choose("line", "`"+shortName(tests[0])+"` fails here:", "The first one fails here:")
	}
	return paragraphs(where, indented(i.Failures[k].excerpt()))
}

// listName returns how a list names the first of these tests, and how many tests that name covers: a test with long
// parameters is named without them, together with its other cases.
func (i issue) listName(tests []string) (name string, n int) {
	const maxName = 160
	name = tests[0]
	whole, _, parameters := strings.Cut(name, "[")
	if !parameters || utf8.RuneCountInString(name) <= maxName && !strings.Contains(name, "`") {
		return name, 1
	}
	for n = 1; n < len(tests) && strings.HasPrefix(tests[n], whole+"["); n++ {
	}
	return whole, n
}

// testNames is like testRun, but only names the tests that fail, without their errors.
func (i issue) testNames() string {
	i.Failures = nil
	return i.testRun()
}

// file returns the file that contains all failing tests; "" if they are in several files or the
// test IDs do not name files.
func (i issue) file() string {
	file := ""
	for k, id := range i.Failing {
		at, _, named := strings.Cut(id, "::")
		if !named || k > 0 && at != file {
			return ""
		}
		file = at
	}
	return file
}

// casesOfOneTest reports whether all failing tests are one test with different parameters.
func (i issue) casesOfOneTest() bool {
	first, _, _ := strings.Cut(i.Failing[0], "[")
	return !slices.ContainsFunc(i.Failing, func(id string) bool { return !strings.HasPrefix(id, first+"[") })
}

// closing returns a sentence that asks for a fix.
func (i issue) closing() string {
	return i.Pick.choose("closing", "", "", "", "", "", "", "", "Please find the cause and fix it. The tests are right and should stay as they are.",
		"Please fix the code, not the tests.", "Could you fix this? The tests describe the intended behavior.", "Please fix it.", "Can somebody look into this?",
		"The tests should not need any change.")
}

// first returns the first failure summary for which holds returns true; ok is false if there is none.
func (i issue) first(holds func(failureSummary) bool) (s failureSummary, ok bool) {
	for _, f := range i.Failures {
		if s = summarize(f); holds(s) {
			return s, true
		}
	}
	return failureSummary{}, false
}

// symptom returns a user's report, with or without imports in its code; "" if every failure can be
// shown only with its test.
func (i issue) symptom(imports bool) string {
	s, ok := i.first(func(s failureSummary) bool { return s.isInformative() && s.isPublic() && s.code != "" })
	if !ok {
		return ""
	}
	code, title := s.body, s.title()
	if imports {
		code = s.code
	}
	if name := s.nameWithin(maxTitle - 20); s.got != "" && name != "" {
		title = i.Pick.choose("title", title, "Wrong result of "+name, title)
	}
	outcome := s.outcome(i.Pick)
	if s.isComplete(title) { // the outcome, and a single line of code, would only repeat the title
		if outcome = ""; !strings.Contains(s.body, "\n") {
			return paragraphs(title, sentences(i.suite(s), i.closing()))
		}
	}
	intro := i.Pick.choose("intro", "To reproduce:", "Steps to reproduce:", "This code shows the problem:", "Example:", "What I run:")
	if s.raised != "" && s.wantError == "" && strings.Contains(title, "`"+s.raised+"`") {
		outcome = s.expected(i.Pick)
	}
	return paragraphs(title, intro, indented(code), outcome, sentences(i.suite(s), i.closing()))
}

// suite returns a sentence about the tests that fail.
func (i issue) suite(s failureSummary) string {
	test, command := "`"+s.test+"`", "`"+i.Command+"`"
	n := len(i.Failing)
	if n > 1 && i.casesOfOneTest() {
		return i.Pick.choose("suite", fmt.Sprintf("%s shows it: %d cases of %s fail.", command, n, test), fmt.Sprintf("%d cases of %s fail when I run %s.", n, test, command),
			fmt.Sprintf("It makes %d cases of %s fail (%s).", n, test, command))
	}
	if n > 1 {
		return i.Pick.choose("suite", fmt.Sprintf("%s shows it: %s fails, and so %s.", command, test, pluralOf(n-1, "does one other test", "do %d other tests")),
			fmt.Sprintf("%d tests fail when I run %s, including %s.", n, command, test), fmt.Sprintf("When I run %s, %s and %s fail.", command, test, plural(n-1, "other test", "other tests")),
			fmt.Sprintf("It makes %s fail (%s). %s.", test, command, pluralOf(n-1, "Another test fails as well", "%d other tests fail as well")))
	}
	return i.Pick.choose("suite", command+" shows it: "+test+" fails.", "Because of this, "+test+" fails when I run "+command+".", "You can see it in "+test+", which fails ("+command+").")
}

// note returns a developer's note; "" if no failure says enough.
func (i issue) note() string {
	s, ok := i.first(failureSummary.isInformative)
	if !ok {
		if s, ok = i.first(func(s failureSummary) bool { return s.message+s.raised+s.failure.excerpt() != "" }); !ok {
			return ""
		}
	}
	test, command := "`"+s.test+"`", "`"+i.Command+"`"
	if !s.isInformative() { // the title has to name the test
		return i.testNote(s)
	}
	if s.nameWithin(maxLine) == "" {
		return i.testNote(s)
	}
	where := i.Pick.choose("where", "Seen in "+test+" ("+command+").", test+" fails ("+command+").")
	if more := len(i.Failing) - 1; more > 0 && i.casesOfOneTest() {
		where = fmt.Sprintf("%d cases of %s fail (%s).", len(i.Failing), test, command)
	} else if more > 0 {
		where = i.Pick.choose("where", test+" fails, and "+pluralOf(more, "one more test does too", "%d more tests do too")+" ("+command+").", test+" and "+plural(more, "other test", "other tests")+" fail ("+command+").")
	}
	title, rest := s.noteTitle(i.Pick)
	if title == "" {
		return ""
	}
	code := ""
	if !strings.Contains(title, "`"+s.call+"`") { // the title does not show the arguments
		code = s.failure.excerpt()
	}
	return paragraphs(title, indented(code), rest, sentences(where, i.ending()))
}

// testNote returns a developer's note about a test, with its failing lines; "" if it would not say what the test
// checks.
func (i issue) testNote(s failureSummary) string {
	command := "`" + i.Command + "`"
	code := s.failure.excerpt()
	if code == "" && s.raised == "" {
		return ""
	}
	message := s.raised
	if message == "" {
		if message = s.message; message != "" && !strings.Contains(message, "assert") && !strings.Contains(message, "!=") && !strings.HasPrefix(message, "expected ") {
			message = s.failure.Type + ": " + message // "None is not 1" does not look like an error
		}
		if hidesValues(firstLine(s.failure.Text)) {
			message = clip(strings.TrimPrefix(s.failure.errorLine(), s.failure.Type+": "))
		}
	}
	if s.wantError != "" && message != "" {
		message += "; expected " + s.wantError
	}
	title := "`" + s.test + "` fails"
	if long := "`" + s.test + "`: " + message; message != "" && message != s.failure.Type && utf8.RuneCountInString(long) <= maxLine+20 {
		title, message = long, ""
	} else if line := oneLine(s.failure.Statement); (message == "" || message == s.failure.Type) && line != "" && utf8.RuneCountInString(line) <= maxLine && !strings.Contains(line, "`") {
		title = "`" + s.test + "` fails at `" + line + "`"
		if code == line {
			code = ""
		}
	}
	where := i.Pick.choose("where", "To reproduce: "+command+".", "Run "+command+" to see it.")
	if more := len(i.Failing) - 1; more > 0 {
		also := pluralOf(more, "One other test fails too", "%d other tests fail too")
		if i.failAlike() {
			also = pluralOf(more, "One other test fails in the same way", "%d other tests fail in the same way")
		}
		where = i.Pick.choose("where", also+" ("+command+").", also+". To reproduce: "+command+".")
	}
	if message == s.failure.Type {
		message = ""
	}
	return paragraphs(title, indented(code), message, sentences(where, i.ending()))
}

// failAlike reports whether all failing tests are known to fail with the same error.
func (i issue) failAlike() bool {
	for _, f := range i.Failures {
		if f.Text != i.Failures[0].Text {
			return false
		}
	}
	return len(i.Failures) == len(i.Failing)
}

// ending returns the last words of a developer's note.
func (i issue) ending() string {
	return i.Pick.choose("ending", "", "", "", "", "", "Fix the code, not the tests.")
}

// question returns a question by a user who is not sure whether it is a bug; "" if no failure says
// enough.
func (i issue) question(imports bool) string {
	s, ok := i.first(func(s failureSummary) bool { return s.isInformative() && s.isPublic() })
	if !ok {
		return ""
	}
	title, rest := s.questionTitle(i.Pick)
	if title == "" {
		return ""
	}
	parts, code := []string{title}, s.body
	if imports {
		code = s.code
	}
	if code != "" && (strings.Contains(s.body, "\n") || !strings.Contains(title, "`"+s.call+"`")) {
		parts = append(parts, i.Pick.choose("intro", "I run this:", "My code:", "Here is the code:"), indented(code))
	}
	parts = append(parts, rest)
	test, command := "the test `"+s.test+"`", "`"+i.Command+"`"
	expects := i.Pick.choose("expects", "T"+test[1:]+" fails because of it.", "I came across it because "+test+" fails.")
	switch {
	case s.wantError != "" && s.raised != "":
		expects = "T" + test[1:] + " expects `" + s.wantError + "` and fails."
	case s.asksForWant():
		expects = i.Pick.choose("expects", "At least "+test+" expects that, and it fails.", "T"+test[1:]+" expects it and fails.")
	case s.want != "":
		expects = i.Pick.choose("expects", "I would expect `"+s.want+"`, and so does "+test+", which fails.", "According to "+test+", it should be `"+s.want+"`.")
	}
	expects += i.Pick.choose("run", " I run the tests with "+command+".", " To see it, run "+command+".")
	ending := i.Pick.choose("ending", "", "", "", "It looks like a bug to me. Can you fix it without changing the tests?", "If this is a bug, please fix it.",
		"Is this a bug? If so, could you fix it?", "I think it is a bug.", "Can you have a look?")
	return paragraphs(append(parts, sentences(expects, ending))...)
}

// reportFacts returns what happened, for a model that writes a report; "" if no failure says enough.
func (i issue) reportFacts() string {
	s, ok := i.first(func(s failureSummary) bool { return s.isInformative() && s.code != "" })
	if !ok {
		return ""
	}
	return paragraphs(indented(s.body), s.outcome(i.Pick))
}
