package audit

import (
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/pipeline/metrics"
	"github.com/tracesmith/tracesmith/schemas"
)

// Verdicts about a value that the debugger printed.
const (
	Unknown = iota
	Same    // the fixed program prints the same there
	Differs // the fixed program prints another value there
	Missing // the fixed program does not get there
)

// Evaluate returns values of expressions in the run of a test, on the buggy or on the fixed version.
type Evaluate func(fixed bool, queries []schemas.TraceQuery) ([]schemas.TraceReply, error)

// Evidence compares the values that the debugger printed before the first edit with the fixed program. All of it is
// computed from the fix.
type Evidence struct {
	Verdicts []int // by index in Record.Values; Unknown from the first edit on
	// Differ says that a value differs in a frame of the program, at a stop that both versions reach. The
	// command prints no whole frame, and no test run has shown the value before. It is nil if no value does so and
	// some value is unknown.
	Differ *bool
	// Possible says that there is such a value: a variable or a returned value of the program that differs and that no run of the
	// tests before the first edit has shown.
	Possible bool
	// The others are nil if they are not applicable.
	ValueRecall   *float64 // V1: the part of the variables of the first difference whose differing value was printed
	Precision     *float64 // V2: the part of the known values that differ
	Causal        *float64 // V3: the part of the variables printed whose value of the fixed run makes the test pass
	CandidateBits *float64 // I1: by how much the functions seen to return what they should reduce the candidates
	UnknownShare  *float64 // the part of the values for which the comparison is unknown
	record        *Record
	pair          schemas.PairedTrace
	prints        map[int][2]string // fingerprints of the values in both versions, by index in Record.Values
	end           int               // the step of the first edit
}

// maxQueries limits the stops whose values are compared in one episode, and maxExpressions those of one stop.
const (
	maxQueries     = 200
	maxExpressions = 100
)

// Compare compares the values of a record with the fixed program.
func Compare(r *Record, pair schemas.PairedTrace, evaluate Evaluate) (*Evidence, error) {
	e := &Evidence{Verdicts: make([]int, len(r.Values)), record: r, pair: pair, prints: map[int][2]string{}, end: math.MaxInt}
	if step, ok := r.FirstEdit(); ok {
		e.end = step
	}
	queries, groups := e.queries()
	if len(queries) > 0 {
		buggy, err := evaluate(false, queries)
		if err != nil {
			return nil, err
		}
		if err := e.judge(queries, groups, buggy, evaluate); err != nil {
			return nil, err
		}
	}
	e.summarize()
	return e, nil
}

// queries returns the queries about the values, one for each stop and frame, and the indexes of the values.
func (e *Evidence) queries() (queries []schemas.TraceQuery, groups [][]int) {
	type key struct{ stop, up int }
	index := map[key]int{}
	for i, v := range e.record.Values {
		if v.Stop < 0 || v.Step >= e.end || v.Up < 0 {
			continue
		}
		s := e.record.Stops[v.Stop]
		if strings.HasPrefix(s.File, "/") || strings.HasPrefix(s.File, "<") || s.Event != "line" && s.Event != "call" && s.Event != "return" {
			continue
		}
		k := key{v.Stop, v.Up}
		at, known := index[k]
		if !known {
			if len(queries) == maxQueries {
				continue
			}
			at = len(queries)
			index[k] = at
			queries = append(queries, schemas.TraceQuery{Kind: s.Event, File: s.File, Line: s.Line, Up: v.Up, Function: v.Function})
			groups = append(groups, nil)
		}
		if q := &queries[at]; len(q.Expressions) < maxExpressions {
			q.Expressions = append(q.Expressions, expressionOf(v))
			groups[at] = append(groups[at], i)
		}
	}
	return queries, groups
}

// expressionOf returns the expression whose value a command printed, and how it prints it.
func expressionOf(v Value) schemas.TraceExpression {
	show := schemas.ShowRepr
	switch {
	case v.Expression == "return" && v.Command != "retval" && v.Command != "rv":
		show = schemas.ShowBrief
	case strings.HasPrefix(v.Command, "pp ") || strings.HasPrefix(v.Command, "pp("):
		show = schemas.ShowPretty
	case strings.HasPrefix(strings.TrimPrefix(v.Command, "!"), "print"):
		show = schemas.ShowString
	}
	source := strings.TrimLeft(v.Expression, "*") // args prints *names
	if inner, ok := strings.CutPrefix(source, "type of "); ok {
		source = "type(" + inner + ")"
	}
	return schemas.TraceExpression{Source: source, Show: show}
}

// judge fills in the verdicts. The hit of a stop is that whose values are those that the debugger printed.
func (e *Evidence) judge(queries []schemas.TraceQuery, groups [][]int, buggy []schemas.TraceReply, evaluate Evaluate) error {
	type place struct {
		query int
		reply schemas.TraceReply
	}
	var asked []schemas.TraceQuery
	var places []place
	at := map[int]int{} // the reply of a stop, if it is known which one it is
	missing := make([]bool, len(queries))
	unmatched := make([]bool, len(queries)) // some hit that fits cannot be compared
	for i, q := range queries {
		fitting := e.fitting(i, q, groups[i], buggy, at)
		if len(fitting) == 1 {
			at[e.record.Values[groups[i][0]].Stop] = fitting[0]
		}
		for _, n := range fitting {
			reply := buggy[n]
			line, hit, ok, isMissing := e.pair.Match(q.Kind, q.File, q.Line, reply.Hit)
			switch {
			case ok:
				q.Line, q.Hits = line, []int{hit}
				asked, places = append(asked, q), append(places, place{i, reply})
				q.Line = queries[i].Line
			case isMissing:
				missing[i] = true
			default:
				unmatched[i] = true
			}
		}
	}
	var fixed []schemas.TraceReply
	if len(asked) > 0 {
		var err error
		if fixed, err = evaluate(true, asked); err != nil {
			return err
		}
	}
	seen := map[int][]int{} // the verdicts of a value, one for each hit that fits
	answered := make([]bool, len(asked))
	for _, reply := range fixed {
		p := places[reply.Query]
		answered[reply.Query] = true
		for j, value := range groups[p.query] {
			if e.matches(value, p.reply.Values[j]) {
				seen[value] = append(seen[value], e.verdict(value, p.reply.Values[j], reply.Values[j]))
				e.prints[value] = [2]string{p.reply.Values[j].Print, reply.Values[j].Print}
			}
		}
	}
	for n, ok := range answered {
		unmatched[places[n].query] = unmatched[places[n].query] || !ok
	}
	for i, group := range groups {
		for _, value := range group {
			v := seen[value]
			switch {
			case unmatched[i] || len(slices.Compact(slices.Sorted(slices.Values(v)))) > 1:
			case missing[i] && len(v) == 0:
				e.Verdicts[value] = Missing
			case len(v) > 0 && !missing[i]:
				e.Verdicts[value] = v[0]
			}
		}
	}
	return nil
}

// sameFrame holds the debugger commands that stop in the same frame, at the first line that fits.
var sameFrame = []string{"n", "next", "unt", "until", "r", "return"}

// fitting returns the indexes of the replies of the buggy run in which most values are those that the debugger printed. at has
// the reply of earlier stops.
func (e *Evidence) fitting(query int, q schemas.TraceQuery, group []int, replies []schemas.TraceReply, at map[int]int) []int {
	var out []int
	best := 1
	index := e.record.Values[group[0]].Stop
	stop := e.record.Stops[index]
	for i, reply := range replies {
		if reply.Query != query {
			continue
		}
		n := 0
		for j, value := range group {
			if e.matches(value, reply.Values[j]) {
				n++
			}
		}
		if n > best {
			best, out = n, nil
		}
		if n == best {
			out = append(out, i)
		}
	}
	word, _, _ := strings.Cut(stop.By, " ")
	before, isKnown := at[index-1]
	isStep := isKnown && stop.Hit == 0 && slices.Contains(sameFrame, word) && e.record.Stops[index-1].Run == stop.Run
	for _, i := range out {
		isHit := replies[i].Hit == stop.Hit && q.Kind == "line" && strings.Contains(stop.Command, e.pair.Test)
		if isHit || isStep && i > before && replies[i].Depth == replies[before].Depth {
			return []int{i}
		}
	}
	return out
}

// matches reports whether a value of the buggy run is the one that the debugger printed.
func (e *Evidence) matches(value int, t schemas.TraceText) bool {
	return t.Error == "" && metrics.ValueText(e.record.Values[value].Text) == metrics.ValueText(t.Text)
}

// verdict compares a value in both versions. Values that differ between two runs of one version are unknown.
func (e *Evidence) verdict(value int, buggy, fixed schemas.TraceText) int {
	v := e.record.Values[value]
	switch {
	case fixed.Error != "" || e.isNoise(v):
		return Unknown
	case metrics.ValueText(buggy.Text) == metrics.ValueText(fixed.Text) || buggy.Print == fixed.Print:
		return Same
	}
	return Differs
}

var nameInCode = regexp.MustCompile(`[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)?`)

// isNoise reports whether an expression contains a variable whose value differs between two runs of one version.
func (e *Evidence) isNoise(v Value) bool {
	for _, masked := range e.pair.Masked {
		place, name, _ := strings.Cut(masked, " ")
		file, function, _ := strings.Cut(place, ":")
		if file != v.File || bareName(function) != v.Function {
			continue
		}
		for _, found := range nameInCode.FindAllString(v.Expression, -1) {
			root, _, _ := strings.Cut(found, ".")
			if found == name || root == name {
				return true
			}
		}
	}
	return false
}
