package audit

import (
	"math"
	"regexp"
	"strings"

	"github.com/tracesmith/tracesmith/pipeline/metrics"
	"github.com/tracesmith/tracesmith/schemas"
)

// summarize computes the figures of the episode from the verdicts.
func (e *Evidence) summarize() {
	known, differing, unknown, evidence, doubtful := 0, 0, 0, false, false
	for i, v := range e.record.Values {
		if v.Step >= e.end {
			continue
		}
		eligible := e.isEvidence(v)
		switch e.Verdicts[i] {
		case Differs:
			differing++
			known++
			evidence = evidence || eligible
		case Same:
			known++
		case Unknown:
			unknown++
			doubtful = doubtful || eligible
		}
	}
	e.Possible = evidence || e.hasHidden()
	e.Precision, e.UnknownShare = metrics.Ratio(differing, known), metrics.Ratio(unknown, known+unknown)
	if evidence || !doubtful {
		e.Differ = &evidence
	}
	e.recall()
	e.causes()
	e.candidates()
}

// Differing returns the number of values that a step printed and that differ in the fixed program, or nil if it printed none
// whose comparison is known.
func (e *Evidence) Differing(step int) *int32 {
	known, n := false, int32(0)
	for i, v := range e.record.Values {
		if v.Step == step && e.Verdicts[i] != Unknown {
			known = true
			if e.Verdicts[i] == Differs {
				n++
			}
		}
	}
	if !known {
		return nil
	}
	return &n
}

// isEvidence reports whether a value would be evidence if it differed.
func (e *Evidence) isEvidence(v Value) bool {
	return !v.IsDump && v.File != "" && !strings.HasPrefix(v.File, "/") && !strings.HasPrefix(v.File, "<") && !schemas.IsTest(v.File) &&
		!e.isInTestOutput(v.Text, v.Step)
}

// hasHidden reports whether the paired trace has a value of the program that differs and that is not in the output of the tests.
func (e *Evidence) hasHidden() bool {
	for _, p := range e.pair.Points {
		if p.FixedEvent < 0 || schemas.IsTest(p.File) {
			continue
		}
		for _, v := range p.Vars {
			isValue := v.Name != "<exit>" && v.Name != "<exception>" && v.Buggy != "" && v.Fixed != ""
			if isValue && !e.isInTestOutput(v.Buggy, e.end) {
				return true
			}
		}
	}
	return false
}

// isInTestOutput reports whether a run before a step has shown a value in the error message of the failing test, or
// of any test if it does not name that one.
func (e *Evidence) isInTestOutput(value string, step int) bool {
	text := metrics.ValueText(value)
	for _, run := range e.record.Tests {
		if run.Step >= step {
			break
		}
		results := run.Results
		if t := run.Result(e.pair.Test); t != nil {
			results = []TestResult{*t}
		}
		for _, t := range results {
			for _, line := range append(t.Details, t.Message) {
				if hasValue(strings.Join(strings.Fields(line), " "), text) {
					return true
				}
			}
		}
	}
	return false
}

// hasValue reports whether a text contains a value, of which reprlib may have left out parts.
func hasValue(text, value string) bool {
	parts := strings.Split(value, "...")
	if len(parts) == 1 {
		return hasToken(text, value)
	}
	for _, part := range parts {
		i := strings.Index(text, part)
		if i < 0 {
			return false
		}
		text = text[i+len(part):]
	}
	return true
}

// hasToken reports whether a text contains another one, and not as a part of a longer word.
func hasToken(text, token string) bool {
	isWord := func(i int) bool {
		return i >= 0 && i < len(text) && (text[i] == '_' || text[i] == '.' && i+1 < len(text) && text[i+1] >= '0' && text[i+1] <= '9' ||
			'0' <= text[i] && text[i] <= '9' || 'a' <= text[i]|0x20 && text[i]|0x20 <= 'z')
	}
	for from := 0; token != ""; {
		i := strings.Index(text[from:], token)
		if i < 0 {
			return false
		}
		i += from
		before := isWord(i-1) && isWord(i)
		after := isWord(i+len(token)) && isWord(i+len(token)-1)
		if !before && !after {
			return true
		}
		from = i + 1
	}
	return false
}

// recall computes V1. A variable is found if the debugger printed it where it differs, or if it printed the same two
// values under another name: an argument, or an attribute that keeps it.
func (e *Evidence) recall() {
	if e.pair.D0 == nil || len(e.pair.D0.Vars) == 0 {
		return
	}
	found := 0
	for _, v := range e.pair.D0.Vars {
		for i, value := range e.record.Values {
			isThere := value.File == e.pair.D0.File && value.Function == bareName(e.pair.D0.Function) && concerns(value.Expression, v.Name)
			if e.Verdicts[i] == Differs && (isThere || e.prints[i] == [2]string{v.Buggy, v.Fixed}) {
				found++
				break
			}
		}
	}
	e.ValueRecall = metrics.Ratio(found, len(e.pair.D0.Vars))
}

// concerns reports whether an expression is a variable, or a part of its value. Variables are named as in TraceValue.
func concerns(expression, name string) bool {
	rest, ok := strings.CutPrefix(expression, name)
	if name == "<return>" {
		return expression == "return"
	}
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// variable is a variable of a function that was inspected.
type variable struct{ file, function, expression string }

// causes computes V3. A variable that does not differ is no cause. One that differs and was not tested is unknown.
func (e *Evidence) causes() {
	known := map[variable]bool{} // whether it is a cause
	for i, v := range e.record.Values {
		at := variable{v.File, v.Function, v.Expression}
		if e.Verdicts[i] == Same && !known[at] {
			known[at] = false
		}
		if e.Verdicts[i] != Differs {
			continue
		}
		for _, c := range e.pair.Causes {
			if c.Verdict == schemas.CauseUnknown || c.File != v.File || bareName(c.Function) != v.Function {
				continue
			}
			for _, name := range c.Vars {
				if concerns(v.Expression, name) {
					known[at] = known[at] || c.Verdict == schemas.CauseSufficient
				}
			}
		}
	}
	causal := 0
	for _, is := range known {
		if is {
			causal++
		}
	}
	e.Causal = metrics.Ratio(causal, len(known))
}

// callOf matches an expression that calls a function and nothing more.
var callOf = regexp.MustCompile(`^(?:[\w.]+\.)?(\w+)\(.*\)$`)

// candidates computes I1. A function of the program is no candidate any more if the debugger has shown one of its
// returns, or the value of a call, and none of its returns differs.
func (e *Evidence) candidates() {
	type function struct{ file, name string }
	all, suspect, returned := map[string]bool{}, map[string]bool{}, map[function]bool{}
	for _, name := range e.pair.Executed {
		if file, _, _ := strings.Cut(name, ":"); !schemas.IsTest(file) {
			all[name] = true
		}
	}
	for _, p := range e.pair.Points {
		for _, v := range p.Vars {
			if v.Name == "<return>" || v.Name == "<exit>" {
				suspect[p.File+":"+p.Function] = true
			}
		}
	}
	for _, s := range e.record.Stops {
		if s.Step < e.end && s.Event == "return" {
			returned[function{s.File, s.Function}] = true
		}
	}
	called := map[string]bool{}
	for i, v := range e.record.Values {
		if m := callOf.FindStringSubmatch(v.Expression); m != nil && e.Verdicts[i] == Same {
			called[m[1]] = true
		}
	}
	left := len(all)
	for name := range all {
		file, qualified, _ := strings.Cut(name, ":")
		if bare := bareName(qualified); (returned[function{file, bare}] || called[bare]) && !suspect[name] {
			left--
		}
	}
	if len(all) > 0 && left > 0 {
		e.CandidateBits = new(math.Log2(float64(len(all)) / float64(left)))
	}
}
