package synth

import (
	"reflect"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/env/trace"
	"github.com/tracesmith/tracesmith/schemas"
)

func TestSymptomSaysWhatWasDoneGotAndExpected(t *testing.T) {
	for name, c := range map[string]struct {
		f    Failure
		want []string
		none bool
	}{
		"pytest": {f: Failure{Type: "AssertionError", Statement: "assert add(1, 2) == 3", Left: "-1", Right: "3"},
			want: []string{"    add(1, 2)\n", "I get `-1`, but `3` is expected"}},
		"pytest, the expected value first": {f: Failure{Type: "AssertionError", Statement: "assert 3 == add(1, 2)", Left: "3", Right: "-1"},
			want: []string{"    add(1, 2)\n", "I get `-1`, but `3` is expected"}},
		"unittest": {f: Failure{Type: "AssertionError", Statement: `self.assertEqual(name("a, b"), "x")`, Left: "'y'", Right: "'x'"},
			want: []string{`    name("a, b")`, "I get `'y'`, but `'x'` is expected"}},
		"unittest, the expected value first": {f: Failure{Type: "AssertionError", Statement: `self.assertEqual("x", name(1))`, Left: "'x'", Right: "'y'"},
			want: []string{"    name(1)", "I get `'y'`, but `'x'` is expected"}},
		"another exception": {f: Failure{Type: "KeyError", Message: "'a'", Statement: "assert look(1) == 2"},
			want: []string{"    look(1)", "it ends with `KeyError: 'a'`"}},
		"nothing raised": {f: Failure{Type: "AssertionError", Message: "ValueError not raised", Statement: "parse(0)"},
			want: []string{"    parse(0)", "nothing happens, but an error is expected (ValueError)"}},
		"no statement": {f: Failure{Type: "KeyError"}, none: true},
	} {
		t.Run(name, func(t *testing.T) {
			got := issue{Command: "pytest", Failures: []Failure{c.f}, Failing: 1, Total: 4}.symptom()
			if c.none != (got == "") {
				t.Fatalf("the text is %q", got)
			}
			for _, want := range c.want {
				if !strings.Contains(got, want) {
					t.Errorf("%q does not say %q", got, want)
				}
			}
		})
	}
}

func TestLinesOfAPatch(t *testing.T) {
	patch := "diff --git a/m.py b/m.py\n--- a/m.py\n+++ b/m.py\n@@ -3,4 +3,3 @@\n one\n-two\n three\n-four\n+for\n@@ -20,2 +19,3 @@\n a\n+b\n c\ndiff --git a/n.py b/n.py\n--- a/n.py\n+++ b/n.py\n@@ -1 +1 @@\n-x\n+y\n"
	before, after := linesOf(patch)
	if got := spans(before["m.py"]); got != "4,6,20-21" {
		t.Errorf("before: %s", got)
	}
	if got := spans(after["m.py"]); got != "3-5,20" {
		t.Errorf("after: %s", got)
	}
	if spans(before["n.py"]) != "1" || spans(after["n.py"]) != "1" {
		t.Errorf("the second file: %v %v", before["n.py"], after["n.py"])
	}
}

func TestTestsFarFromABugExecuteWhatTheyDidBefore(t *testing.T) {
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

// The failing command can always be shown: its words, and those of the sentence around it, never
// count as words of the patch.
func TestFailingCommandGivesNothingAway(t *testing.T) {
	cfg := Config{}
	w := &worker{factory: &factory{cfg: cfg}}
	s := &repoState{repo: Repo{Task: schemas.Task{InstanceID: "r", Entrypoint: "python -m pytest -q"}}, kept: []string{"a", "b"}}
	trial := &Trial{Repo: "r", FailToPass: []string{"a"}, Patch: "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-m.pytest(right, cause)\n+q\n"}
	var r release
	if err := w.writeTexts(t.Context(), s, trial, &r); err != nil {
		t.Fatal(err)
	}
	if r.Texts[TextTestRun] == "" {
		t.Errorf("refused: %v", r.Leaks)
	}
}
