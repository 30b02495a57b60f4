package synth

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/env/trace"
)

// failures has a failure of each kind, with what its texts must contain.
var failures = map[string]struct {
	f    Failure
	want []string
}{
	"equal": {Failure{Type: "AssertionError", Left: "-1", Right: "3", Scene: &Scene{Relation: relationEqual, Call: "add(1, 2)", Short: "add(...)", SelfContained: true}},
		[]string{"add(1, 2)", "`-1`", "`3`"}},
	"the expected value first": {Failure{Type: "AssertionError", Left: "'x'", Right: "'y'", Scene: &Scene{Relation: relationEqual, Call: "name(1)", Short: "name(...)", Swapped: true, SelfContained: true}},
		[]string{"`name(1)`", "`'y'`", "`'x'`"}},
	"several lines": {Failure{Type: "AssertionError", Left: "3", Right: "2",
		Scene: &Scene{Relation: relationEqual, Call: "len(c)", Short: "len(...)", Imports: []string{"from store import Cache"}, Before: []string{"c = Cache(2)", "c.put(1)"}, SelfContained: true}},
		[]string{"    from store import Cache\n\n    c = Cache(2)\n    c.put(1)\n    len(c)\n", "`3`", "`2`"}},
	"true": {Failure{Type: "AssertionError", Scene: &Scene{Relation: relationTrue, Call: "1 in found(3)", SelfContained: true}}, []string{"`1 in found(3)`", "true"}},
	"another exception": {Failure{Type: "KeyError", Message: "'a'", Scene: &Scene{Relation: relationEqual, Call: "look(1)", Short: "look(...)", Want: "2", SelfContained: true}},
		[]string{"`look(1)`", "`KeyError"}},
	"nothing raised": {Failure{Type: "Failed", Message: "DID NOT RAISE <class 'ValueError'>", Scene: &Scene{Relation: relationRaises, Call: "parse(0)", Short: "parse(...)", Raises: "ValueError", SelfContained: true}},
		[]string{"`parse(0)`", "`ValueError`"}},
	"the wrong exception": {Failure{Type: "KeyError", Message: "0", Scene: &Scene{Relation: relationRaises, Call: "parse(0)", Short: "parse(...)", Raises: "ValueError", SelfContained: true}},
		[]string{"`parse(0)`", "`ValueError`", "KeyError"}},
}

func TestUserTextsSayCallResultAndExpectation(t *testing.T) {
	for name, c := range failures {
		for key := range 40 {
			c.f.Test = "tests/test_a.py::TestIt::test_it[1]"
			i := issue{Command: "pytest -q", Failures: []Failure{c.f}, Failing: []string{c.f.Test, "tests/test_a.py::test_other"}, Pick: picker(fmt.Sprint(key))}
			for kind, text := range map[string]string{TextSymptom: i.symptom(true), TextQuestion: i.question(true)} {
				for _, want := range append(c.want, "`test_it`", "`pytest -q`") {
					if kind == TextQuestion && want == "`2`" && name == "several lines" {
						continue
					}
					if !strings.Contains(text, want) {
						t.Errorf("%s, %s: %q does not contain %q", name, kind, text, want)
					}
				}
				if title := firstLine(text); len(title) > maxTitle+20 || strings.Contains(text, "``") || strings.Contains(text, "  `") {
					t.Errorf("%s, %s: title too long or malformed: %q", name, kind, text)
				}
			}
		}
	}
}

// A question asks whether what happens should happen, or whether what does not happen should. Its next sentence must
// agree with that.
func TestQuestionsAgreeWithTheirExplanation(t *testing.T) {
	for name, want := range map[string]string{
		"equal": "3", "nothing raised": "expects it and fails|expects that, and it fails", "true": "expects it and fails|expects that, and it fails", "the wrong exception": "expects `ValueError` and fails",
	} {
		f := failures[name].f
		f.Test = "t.py::test_it"
		for key := range 20 {
			text := issue{Command: "pytest", Failures: []Failure{f}, Failing: []string{f.Test}, Pick: picker(fmt.Sprint(key))}.question(true)
			if !slices.ContainsFunc(strings.Split(want, "|"), func(w string) bool { return strings.Contains(text, w) }) {
				t.Errorf("%s: %q, want %s", name, text, want)
			}
		}
	}
}

// Long values, calls and parameters do not get into a title or a list. Nothing is cut.
func TestLongPartsAreLeftOutOfTitles(t *testing.T) {
	long := strings.Repeat("word ", 24)
	f := Failure{Test: "t.py::test_it[1]", Type: "AssertionError", Left: "'" + long + "'", Right: "'" + long + "!'",
		Scene: &Scene{Relation: relationEqual, Call: "text(" + strings.Repeat("1, ", 35) + "2)", Short: "text(...)", SelfContained: true}}
	for key := range 20 {
		i := issue{Command: "pytest", Failures: []Failure{f}, Failing: []string{f.Test}, Pick: picker(fmt.Sprint(key))}
		for kind, text := range map[string]string{TextSymptom: i.symptom(true), TextNote: i.note(), TextQuestion: i.question(true)} {
			if title := firstLine(text); utf8.RuneCountInString(title) > maxLine || !strings.Contains(title, "`text(...)`") || !strings.Contains(text, f.Left) || !strings.Contains(text, f.Right) {
				t.Errorf("%s: %q", kind, text)
			}
		}
	}
	cases := []string{"t.py::test_a", "t.py::test_b[1]", "t.py::test_b[2]", "t.py::test_c[" + long + long + "0]", "t.py::test_c[" + long + long + "1]", "t.py::test_d"}
	text := issue{Command: "pytest", Failing: cases, Failures: []Failure{{Test: cases[4], Text: "KeyError: 1"}}}.testRun()
	if want := "- `t.py::test_c`: `KeyError: 1`\n- and 5 more tests"; !strings.Contains(text, want) { // others may fail in other ways
		t.Errorf("%q does not contain %q", text, want)
	}
	text = issue{Command: "pytest", Failing: cases}.testRun()
	if want := "- `t.py::test_a`\n- `t.py::test_b[1]`\n- `t.py::test_b[2]`\n- `t.py::test_c` (2 cases)\n- `t.py::test_d`"; !strings.Contains(text, want) {
		t.Errorf("%q does not contain %q", text, want)
	}
}

// A user calls no private functions. A developer's note may.
func TestUserTextsHaveNoPrivateNames(t *testing.T) {
	for call, public := range map[string]bool{"cart._total(1)": false, "_strip(1)": false, "cart.total(_)": true, "cart.__len__()": true, "total_of(1)": true} {
		f := Failure{Test: "t.py::test_it", Type: "AssertionError", Left: "1", Right: "2", Scene: &Scene{Relation: relationEqual, Call: call, SelfContained: true}}
		i := issue{Command: "pytest", Failures: []Failure{f}, Failing: []string{f.Test}}
		if i.note() == "" || (i.symptom(true) != "") != public || (i.question(true) != "") != public {
			t.Errorf("%s: %q, %q, %q", call, i.note(), i.symptom(true), i.question(true))
		}
	}
}

// What differs between machines does not get into texts.
func TestFailuresAreMasked(t *testing.T) {
	f := Failure{
		Message: "<Cart object at 0x7f12ab34cd56> != <tests.test_cart.TestCart[72 chars]7950>", Left: "'/tmp/pytest-of-user/pytest-0/test_it0/a.txt'",
		Text: "in /opt/venv-1.0/lib/python3.12/json/decoder.py", Scene: &Scene{Before: []string{"x = '<C object at 0x7f12ab34cd56>'"}},
	}
	f.mask()
	want := Failure{
		Message: "<Cart object at 0x...> != <tests.test_cart.TestCart...>", Left: "'/tmp/test_it0/a.txt'",
		Text: "in /usr/lib/python3.12/json/decoder.py", Scene: &Scene{Before: []string{"x = '<C object at 0x...>'"}},
	}
	if diff := cmp.Diff(want, f); diff != "" {
		t.Error(diff)
	}
}

func TestCodeOnOneLine(t *testing.T) {
	for code, want := range map[string]string{
		"f(1)": "f(1)", "f(\n    1,\n    2,\n)": "f(1, 2)", "f(1,\n  [\n   2])": "f(1, [2])", "a +\n  b": "a + b",
	} {
		if got := oneLine(code); got != want {
			t.Errorf("%q becomes %q, want %q", code, got, want)
		}
	}
}

// Without the expression under test, a note has the message of the assertion, and what pytest says about its operands.
func TestNotesWithoutAnExpression(t *testing.T) {
	for message, want := range map[string]string{
		"assert 1 == 2\n +  where 1 = <Cart>.size":   "`test_it`: assert 1 == 2, where 1 = <Cart>.size",
		"'X.va' != 'X.val'\n- X.va\n+ X.val":         "`test_it`: 'X.va' != 'X.val'",
		"'X.vaaaaaa[31 chars]a' != 'X.val'":          "`test_it`: 1 != 2",
		"assert 'X.vaa...aaa' == 'X.val'\n  - X.val": "`test_it`: 1 != 2",
		"None is not 1": "`test_it`: AssertionError: None is not 1",
		"":              "`test_it` fails",
	} {
		f := Failure{Test: "t.py::test_it", Type: "AssertionError", Message: message, Text: "AssertionError: " + message, Left: "1", Right: "2",
			Scene: &Scene{Relation: relationEqual}, Lines: []TestLine{{"test_it", "self.check(3)"}, {"check", "return self.assertEqual(\nf(a),\nself.b)"}}, Values: []string{"a = 3"}}
		i := issue{Command: "pytest", Failures: []Failure{f}, Failing: []string{f.Test}}
		text := i.note()
		if firstLine(text) != want || strings.Count(text, "test_it") != 1 || !strings.Contains(text, "\n    self.check(3)\n    # in check: self.assertEqual(f(a), self.b)\n    # a = 3\n") {
			t.Errorf("%q, want the title %q", text, want)
		}
		if i.Failures[0].Lines = nil; i.note() != "" {
			t.Errorf("%q does not say what the test checks", i.note())
		}
	}
}

// Tests that fail in the same way are only named so if all of them are known to.
func TestNotesAboutOtherTests(t *testing.T) {
	f := Failure{Test: "t.py::test_a", Type: "KeyError", Text: "KeyError: 1", Message: "1"}
	other := Failure{Test: "t.py::test_b", Type: "KeyError", Text: "KeyError: 1", Message: "1"}
	failing := []string{f.Test, other.Test}
	for want, failures := range map[string][]Failure{"One other test fails in the same way": {f, other}, "One other test fails too": {f}} {
		if text := (issue{Command: "pytest", Failures: failures, Failing: failing}).note(); !strings.Contains(text, want) {
			t.Errorf("%q does not contain %q", text, want)
		}
	}
	other.Text = "KeyError: 2"
	if text := (issue{Command: "pytest", Failures: []Failure{f, other}, Failing: failing}).note(); !strings.Contains(text, "One other test fails too") {
		t.Errorf("%q", text)
	}
}

// Titles do not contain variables that only the code below them explains.
func TestNamesInTitles(t *testing.T) {
	for _, c := range []struct{ call, short, before, want string }{
		{"f(x)", "f(...)", "x = 1", "f(...)"},
		{"f(1, x=2)", "f(...)", "x = 1\nfor y in x:\n    pass", "f(1, x=2) f(...)"},
		{"c.put(1)", "c.put(...)", "c = Cache(2)", "put(1) put(...)"},
		{"c.put(x)", "c.put(...)", "c, x = Cache(2), 1", "put(...)"},
		{"len(c)", "len(...)", "with open_cache(2) as c:\n    pass", "len(c)"},
		{"Foo().bar()", "Foo().bar()", "class Foo(Bar):\n    x = 2", ""},
		{"C.of(x).g(1)", "C.of(x).g(...)", "x = 1", "C.of(...).g(1) C.of(...).g(...)"},
		{"f('x')", "f(...)", "x = 1", "f('x') f(...)"},
	} {
		if got := strings.Join(namesFor(c.call, c.short, []string{c.before}), " "); got != c.want {
			t.Errorf("%s: %q, want %q", c.call, got, c.want)
		}
	}
}

// A failure that can be shown only with its test has no user's report.
func TestTextsWithoutAScene(t *testing.T) {
	f := Failure{Test: "t.py::test_a", Type: "AssertionError", Message: "no way", Text: "AssertionError: no way"}
	i := issue{Command: "pytest", Failures: []Failure{f}, Failing: []string{f.Test}}
	if i.symptom(true) != "" || i.question(true) != "" || i.note() != "" {
		t.Errorf("%q, %q, %q", i.symptom(true), i.question(true), i.note())
	}
	if text := i.testRun(); !strings.Contains(text, "`test_a` fails") || !strings.Contains(text, "`t.py::test_a` fails: `AssertionError: no way`") {
		t.Errorf("%q", text)
	}
	if kind := kindOf(i.Pick, TextSymptom, map[string]string{TextNote: "n", TextTestRun: "t"}); kind != TextNote {
		t.Errorf("a task without a symptom gets %s", kind)
	}
}

// An error line has no values if they are not those that the test compares. That of a doctest names no exception.
func TestErrorLine(t *testing.T) {
	f := Failure{Type: "AssertionError", Text: "AssertionError: assert '+---...---+' == '+---...---+'", Left: "32", Right: "11", Part: "len"}
	if got, want := f.errorLine(), "AssertionError"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	f = Failure{Type: "AssertionError", Text: "AssertionError: expected 'a', got 'b'"}
	if got, want := f.errorLine(), "expected 'a', got 'b'"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestCasesOfOneTestAreCounted(t *testing.T) {
	f := Failure{Test: "test_a.py::test_it[1]", Type: "AssertionError", Text: "AssertionError: x", Left: "-1", Right: "3", Scene: &Scene{Relation: relationEqual, Call: "add(1, 2)", Short: "add(...)", SelfContained: true}}
	for key := range 20 {
		i := issue{Command: "pytest -q", Failures: []Failure{f}, Failing: []string{f.Test, "test_a.py::test_it[2]"}, Pick: picker(fmt.Sprint(key))}
		for kind, text := range map[string]string{TextSymptom: i.symptom(true), TextNote: i.note(), TextTestRun: i.testRun()} {
			if named := strings.Contains(text, "2 cases of `test_it`") || strings.Contains(text, "2 tests fail in test_a.py"); !named || strings.Contains(text, "other") {
				t.Errorf("%s: %s", kind, text)
			}
		}
	}
}

var updateTexts = flag.Bool("update", false, "write the golden texts")

// The wordings are part of the datasets, so a change to them requires a new TextVersion, a new golden
// file and a line in the changelog.
func TestTextsMatchTheirGoldenFile(t *testing.T) {
	var got strings.Builder
	fmt.Fprintf(&got, "version %d\n", TextVersion)
	for _, name := range slices.Sorted(maps.Keys(failures)) {
		for key := range 3 {
			f := failures[name].f
			f.Test = "tests/test_a.py::test_it"
			f.Text = f.Type + ": " + f.Message
			failing := []string{f.Test, "tests/test_a.py::test_b", "tests/test_a.py::test_c"}[:key+1]
			i := issue{Command: "python -m pytest -q", Failures: []Failure{f}, Failing: failing, Pick: picker(fmt.Sprint(name, key))}
			for _, text := range []string{i.symptom(true), i.note(), i.question(true), i.testRun()} {
				fmt.Fprintf(&got, "\n==== %s\n%s\n", name, text)
			}
		}
	}
	const file = "testdata/texts.txt"
	if *updateTexts {
		if err := errors.Join(os.MkdirAll("testdata", 0o755), os.WriteFile(file, []byte(got.String()), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("raise TextVersion, run with -update and describe the change in CHANGELOG.md:\n%s", diff)
	}
}

func TestLinesOfAPatch(t *testing.T) {
	patch := "diff --git a/m.py b/m.py\n--- a/m.py\n+++ b/m.py\n@@ -3,4 +3,3 @@\n one\n-two\n three\n-four\n+for\n@@ -20,2 +19,3 @@\n a\n+b\n c\ndiff --git a/n.py b/n.py\n--- a/n.py\n+++ b/n.py\n@@ -1 +1 @@\n-x\n+y\n"
	before, after := changedLines(patch)
	if got := formatSpans(before["m.py"]); got != "4,6,20-21" {
		t.Errorf("before: %s", got)
	}
	if got := formatSpans(after["m.py"]); got != "3-5,20" {
		t.Errorf("after: %s", got)
	}
	if formatSpans(before["n.py"]) != "1" || formatSpans(after["n.py"]) != "1" {
		t.Errorf("the second file: %v %v", before["n.py"], after["n.py"])
	}
}

func TestLinesOfTestMapsLinesToHealthyFile(t *testing.T) {
	c := coverage{Tests: map[string]map[string]string{"far": {"p.py": "1-2,5-6", "q.py": "3"}}}
	patch := "--- a/p.py\n+++ b/p.py\n@@ -2,3 +2,4 @@\n a\n-b\n+B\n+new\n c\n"
	old, err := trace.OldLines([]byte(patch))
	if err != nil {
		t.Fatal(err)
	}
	got := c.linesOfTest("far", trace.Lines{"p.py": {1, 2, 3, 4, 5, 6, 7, 8}, "q.py": {2, 3}}, old)
	if want := (trace.Lines{"p.py": {1, 2, 6, 7}, "q.py": {3}}); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestCoverageSelectsTests(t *testing.T) {
	c := coverage{Import: map[string]string{"m.py": "1,9"}, Tests: map[string]map[string]string{
		"b": {"m.py": "2-4"}, "a": {"m.py": "4"}, "c": {"n.py": "4"},
	}}
	for _, x := range []struct {
		line    int
		want    string
		reached bool
	}{{4, "a b", true}, {2, "b", true}, {9, "", true}, {7, "", false}} {
		got, reached := c.covering(map[string][]int{"m.py": {x.line}})
		if strings.Join(got, " ") != x.want || reached != x.reached {
			t.Errorf("line %d: %v %v", x.line, got, reached)
		}
	}
}

func TestEntrypoints(t *testing.T) {
	for line, want := range map[string]string{
		"python -m pytest -q":                            "pytest module [-q]",
		"pytest tests/test_a.py -k 'a and b'":            "pytest [tests/test_a.py -k a and b]",
		"PYTHONPATH=src python3 -m pytest":               "pytest module [] map[PYTHONPATH:src]",
		"/usr/bin/python3.11 -B -m unittest discover -v": "unittest module [discover -v]",
		"python setup.py test":                           "",
		"pytest && echo done":                            "",
		"pytest $ARGS":                                   "",
		"tox":                                            "",
		"":                                               "",
		"pytest 'open":                                   "",
	} {
		c, err := parseCommand(line)
		got := ""
		if err == nil {
			got = strings.TrimSpace(strings.Join([]string{c.runner, map[bool]string{true: "module ", false: ""}[c.module] + "[" + strings.Join(c.argv, " ") + "]"}, " "))
			if len(c.env) > 0 {
				got += " map[PYTHONPATH:" + c.env["PYTHONPATH"] + "]"
			}
		}
		if got != want {
			t.Errorf("%q is %q (%v), want %q", line, got, err, want)
		}
	}
}

// A text can always contain the failing command: its words, and those of the sentence around it, do
// not count as words of the patch.
func TestFailingCommandIsNotALeak(t *testing.T) {
	cfg := Config{}
	w := &worker{factory: &factory{cfg: cfg}}
	s := &repoState{repo: healthy(t, "r", "python -m pytest -q", map[string]string{"x.py": "q\n"}), kept: []string{"a", "b"}}
	trial := &Trial{Repo: "r", FailToPass: []string{"a"}, Patch: "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-m.pytest(right, cause)\n+q\n"}
	var r release
	if err := w.writeTexts(t.Context(), s, trial, &r); err != nil {
		t.Fatal(err)
	}
	if r.Texts[TextTestRun] == "" {
		t.Errorf("refused: %v", r.Leaks)
	}
}

// Functions with the names of words in closing sentences do not make texts leak.
func TestFixedSentencesHaveAllWordings(t *testing.T) {
	words := fixedSentences()
	for n := range 500 {
		i := issue{Pick: picker(fmt.Sprint("other ", n))}
		for _, text := range []string{i.closing(), i.ending()} {
			if !strings.Contains(words, text) {
				t.Errorf("%q is missing", text)
			}
		}
	}
}

// unittest prints only the first line of the failing statement, so names on other lines are not known from the output.
func TestOutputOfUnittestHasOneLineOfTheStatement(t *testing.T) {
	trial := &Trial{Failures: []Failure{{Statement: "self.assertEqual(\n    book._settle(1), 2)", Scene: &Scene{Call: "book._settle(1)", Before: []string{"book = open_book()"}}}}}
	for _, c := range []struct {
		command command
		shown   bool
	}{{command{runner: runPytest}, true}, {command{runner: runPytest, argv: []string{"--tb=short"}}, false}, {command{runner: runUnittest}, false}} {
		out := failureOutput(trial, c.command)
		if strings.Contains(out, "_settle") != c.shown || strings.Contains(out, "open_book") != c.shown || !strings.Contains(out, "assertEqual") {
			t.Errorf("%+v: %q", c.command, out)
		}
	}
}

// pytest shows only the first line of a with statement that fails because its body does not raise.
func TestOutputOfPytestHasNoBodyOfAWithStatement(t *testing.T) {
	trial := &Trial{Failures: []Failure{{
		Message: "DID NOT RAISE ValueError",
		Scene:   &Scene{Relation: relationRaises, Raises: "ValueError", Call: "parse(text, strict_mode=True)", Before: []string{"text = read_text()"}},
	}}}
	out := failureOutput(trial, command{runner: runPytest})
	if strings.Contains(out, "strict_mode") || !strings.Contains(out, "read_text") || !strings.Contains(out, "ValueError") {
		t.Error(out)
	}
}
