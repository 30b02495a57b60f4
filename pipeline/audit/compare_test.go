package audit

import (
	"testing"

	"github.com/tracesmith/tracesmith/schemas"
)

// stopped is an answer of the debugger at a line of the program.
func stopped(output string) string {
	return "> calc.py(3)total()\n-> return x\n" + output + "\nCurrent frame: calc.py:3 in total\n  3  ->\t    return x"
}

// returned is a step at whose end total returns a value.
func returned(value string) call {
	return pdb("r", "--Return--\n> calc.py(3)total()->"+value+"\n-> return x\nCurrent frame: calc.py:3 in total")
}

// runs returns a function that replies to queries: at each hit, the value of each expression in a version.
func runs(t *testing.T, values func(fixed bool, hit int, source string) (text string)) Evaluate {
	return func(fixed bool, queries []schemas.TraceQuery) ([]schemas.TraceReply, error) {
		var out []schemas.TraceReply
		for i, q := range queries {
			if want := map[bool]int{false: 3, true: 4}[fixed]; q.Line != want || q.File != "calc.py" {
				t.Errorf("query at %s:%d", q.File, q.Line)
			}
			for hit := 1; hit <= 3; hit++ {
				if len(q.Hits) > 0 && q.Hits[0] != hit {
					continue
				}
				r := schemas.TraceReply{Query: i, Hit: hit}
				for _, e := range q.Expressions {
					text := values(fixed, hit, e.Source)
					if e.Source == "return" && e.Show != schemas.ShowBrief {
						t.Errorf("the debugger abbreviates what a function returns, and the query asks for %s", e.Show)
					}
					r.Values = append(r.Values, schemas.TraceText{Text: text, Print: text})
				}
				out = append(out, r)
			}
		}
		return out, nil
	}
}

// comparedPair returns the paired trace of total.
func comparedPair() schemas.PairedTrace {
	return schemas.PairedTrace{
		Test: "test_t.py::test_f", Executed: []string{"calc.py:total", "calc.py:parse", "test_t.py:test_f"},
		Matches: []schemas.TraceMatch{{Kind: "line", File: "calc.py", Line: 3, FixedLine: 4, Hits: [][3]int{{1, 2, 1}}}, {Kind: "return", File: "calc.py", Line: 3, FixedLine: 4, Hits: [][3]int{{1, 3, 1}}}},
		Stops:   []schemas.TracedLines{{File: "calc.py", Function: "total", Line: 3, Hits: [2]int{1, 3}, Missing: [][2]int{{3, 3}}}},
		D0:      &schemas.TracePoint{File: "calc.py", Function: "total", Vars: []schemas.TraceValue{{Name: "x"}, {Name: "y"}, {Name: "other", Buggy: "20", Fixed: "21"}}},
		Causes:  []schemas.TraceCause{{File: "calc.py", Function: "total", Vars: []string{"x"}, Method: schemas.CauseValue, Verdict: schemas.CauseSufficient}},
		Masked:  []string{"calc.py:total noise"},
	}
}

// valueOf returns values for runs: x is 10 times the hit, and the fixed version has one more at hit 2. same never differs.
func valueOf(fixed bool, hit int, source string) string {
	switch {
	case source == "same":
		return "'s'"
	case source == "return":
		return map[bool]string{false: "[1, 2, 3, 4, 5, 6, ...]", true: "[2, 2, 3, 4, 5, 6, ...]"}[fixed]
	case source == "hit":
		return string(rune('0' + hit))
	case fixed && hit == 2:
		return "21"
	}
	return string(rune('0'+hit)) + "0"
}

func TestCompare(t *testing.T) {
	pair, evaluate := comparedPair(), runs(t, valueOf)
	fails := call{tool: "eval", answer: "The tests do not pass. 1 passed, 1 failed.\n____ test_f ____\n\nE       assert 20 == 21\n\ntest_t.py:3: AssertionError\n1 failed, 1 passed"}
	edit := call{tool: "edit", arguments: map[string]any{"path": "calc.py"}, answer: "Replaced"}
	yes, no := new(true), new(false)
	for name, c := range map[string]struct {
		calls []call
		want  *bool
	}{
		"a value that differs":            {[]call{pdb("c ;; p x", stopped("20"))}, yes},
		"one that does not":               {[]call{pdb("c ;; p x", stopped("10"))}, no},
		"a stop that only one reaches":    {[]call{pdb("c ;; p x", stopped("30"))}, no},
		"a part of a tuple":               {[]call{pdb("c ;; p same, x", stopped("('s', 20)"))}, yes},
		"a dump":                          {[]call{pdb("c ;; p locals()", stopped("{'x': 20}"))}, no},
		"an error message has shown it":   {[]call{fails, pdb("c ;; p x", stopped("20"))}, no},
		"after an edit":                   {[]call{edit, pdb("c ;; p x", stopped("20"))}, no},
		"a value that is never there":     {[]call{pdb("c ;; p x", stopped("77"))}, nil},
		"the hit is ambiguous":            {[]call{pdb("c ;; p same", stopped("'s'"))}, nil},
		"the first hit after a known one": {[]call{pdb("c ;; p x", stopped("10")), pdb("n ;; p same", stopped("'s'"))}, no},
		"noise":                           {[]call{pdb("c ;; p noise", stopped("20"))}, nil},
		"another value decides the hit":   {[]call{pdb("c ;; p hit, same", stopped("(2, 's')"))}, no},
		"nothing but a stop":              {[]call{pdb("c", stopped(""))}, no},
		"in a frame of a test":            {[]call{pdb("c ;; u ;; p x", stopped("> test_t.py(3)test_f()\n-> total()\n20"))}, no},
		"a test prints it without a bug":  {[]call{fails, pdb("c ;; p hit, x", stopped("(2, 20)"))}, no},
		"the message of another test": {[]call{
			{tool: "eval", answer: "____ test_f ____\n\nE       assert 3 == 2\n\n____ test_g ____\n\nE       assert 20 == 2\n\n2 failed"}, pdb("c ;; p x", stopped("20")),
		}, yes},
		"an error message has shown the whole value": {[]call{{tool: "eval", answer: "____ test_f ____\n\nE       assert [1, 2, 3, 4, 5, 6, 7, 8] == 2\n\n1 failed"}, returned("[1, 2, 3, 4, 5, 6, ...]")}, no},
		"an abbreviated value":                       {[]call{fails, returned("[1, 2, 3, 4, 5, 6, ...]")}, yes},
		"a longer word in error messages":            {[]call{{tool: "eval", answer: "____ test_f ____\n\nE       assert 120 == 2.20\n\n1 failed"}, pdb("c ;; p x", stopped("20"))}, yes},
	} {
		e, err := Compare(recordOf(rowsOf(t, c.calls...), "/testbed"), pair, evaluate)
		if err != nil {
			t.Fatal(err)
		}
		if (e.Differ == nil) != (c.want == nil) || c.want != nil && *e.Differ != *c.want {
			t.Errorf("%s: got %v, want %v; verdicts %v", name, schemas.Value(e.Differ), schemas.Value(c.want), e.Verdicts)
		}
	}
	rows := rowsOf(t, pdb("c ;; p x, same, hit", stopped("(20, 's', 2)")), pdb("r", "--Return--\n> calc.py(3)total()->20\n-> return x\nCurrent frame: calc.py:3 in total"))
	e, err := Compare(recordOf(rows, "/testbed"), pair, evaluate)
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]struct {
		got  *float64
		want float64
	}{
		"V1": {e.ValueRecall, 2.0 / 3}, "V2": {e.Precision, 1.0 / 3}, "V3": {e.Causal, 1.0 / 3}, "I1": {e.CandidateBits, 1}, "unknown": {e.UnknownShare, 0.25},
	} {
		if got.got == nil || *got.got != got.want {
			t.Errorf("%s is %v, want %v", name, schemas.Value(got.got), got.want)
		}
	}
	for value, want := range map[string]bool{"20": false, "31": true} {
		pair := comparedPair()
		pair.Points = []schemas.TracePoint{{File: "calc.py", Function: "total", Vars: []schemas.TraceValue{{Name: "x", Buggy: value, Fixed: "21"}}}}
		e, err := Compare(recordOf(rowsOf(t, fails, pdb("c ;; p same, hit", stopped("('s', 1)"))), "/testbed"), pair, evaluate)
		if err != nil || e.Possible != want {
			t.Errorf("a difference in %s is possible evidence: %v, %v", value, e.Possible, err)
		}
	}
	var episode schemas.EpisodeRow
	e.Fill(&episode, rows)
	if rows[0].GoldNDiffering == nil || *rows[0].GoldNDiffering != 1 || rows[1].GoldNDiffering != nil {
		t.Errorf("steps: %v, %v", rows[0].GoldNDiffering, rows[1].GoldNDiffering)
	}
}

// The value of a call shows that the function is right.
func TestCallsExcludeCandidates(t *testing.T) {
	rows := rowsOf(t, pdb("c ;; p hit, x, parse(same)", stopped("(2, 20, 's')")))
	e, err := Compare(recordOf(rows, "/testbed"), comparedPair(), runs(t, func(fixed bool, hit int, source string) string {
		if source == "parse(same)" {
			source = "same"
		}
		return valueOf(fixed, hit, source)
	}))
	if err != nil {
		t.Fatal(err)
	}
	if e.CandidateBits == nil || *e.CandidateBits != 1 {
		t.Errorf("I1 after the value of a call is %v", schemas.Value(e.CandidateBits))
	}
}
