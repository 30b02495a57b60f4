package schemas

import "slices"

// PairedTrace compares the run of a failing test with its run on the fixed version of the program. It is
// privileged as a whole, because all of it except Test, Python, Length and Failure depends on the fix: no
// part may be shown to a model or decide what text it reads. Lines are those of the buggy version.
type PairedTrace struct {
	Test        string `json:"test"`
	Python      string `json:"python"`       // version of the interpreter
	Length      int    `json:"length"`       // events of the buggy run
	FixedLength int    `json:"fixed_length"` // events of the fixed run; with LimitEvents, it may have more

	D0      *TracePoint  `json:"d0,omitempty"`      // privileged: the first difference; nil = none was found
	Chain   []TracePoint `json:"chain,omitempty"`   // privileged: D0, the calls and returns after it that pass a difference on, and the failure
	Failure *TracePoint  `json:"failure,omitempty"` // where the test failed, with the variables that differ there (privileged)

	// Points are the line events, calls and returns that both versions have and at which variables
	// differ (privileged). Stops says for which lines they are complete.
	Points []TracePoint  `json:"points,omitempty"`
	Stops  []TracedLines `json:"stops,omitempty"`
	Masked []string      `json:"masked,omitempty"` // variables that differ between runs of one version, "file:function variable"

	Causes []TraceCause `json:"causes,omitempty"` // privileged: experiments with values of the fixed run
	Shares CauseShares  `json:"shares"`

	Unstable bool     `json:"unstable,omitempty"` // runs of one version differ in control flow
	Limits   []string `json:"limits,omitempty"`   // the limits that were reached, LimitEvents and others
	Runs     int      `json:"runs"`               // test runs for the trace,
	TestRuns int      `json:"experiment_runs"`    // and for the experiments
}

// Limits that a paired trace can reach.
const (
	LimitEvents  = "events"  // one of the runs was traced in part only
	LimitWindow  = "window"  // lines were compared in a part of the runs only, see TracedLines
	LimitDepth   = "depth"   // after the window, only outer calls were compared
	LimitZoom    = "zoom"    // the place of the first difference could not be narrowed down further
	LimitPoints  = "points"  // there are more points
	LimitChain   = "chain"   // there are more links
	LimitCauses  = "causes"  // there are more candidates for experiments
	LimitThreads = "threads" // the test also ran the program in other threads, which are not traced
)

// TracePoint is an event of the buggy run.
type TracePoint struct {
	Kind     string `json:"kind"` // call, line, return, exception; of D0: value or flow; of the last link: failure
	File     string `json:"file"`
	Function string `json:"function"` // qualified name
	Line     int    `json:"line"`
	Hit      int    `json:"hit,omitempty"` // line events: how often the line has run, from 1; 0 = unknown
	Event    int    `json:"event"`         // number in the buggy run
	Depth    int    `json:"depth"`         // functions of the workspace on the stack
	// FixedLine and FixedEvent are the event of the fixed run, in its lines (privileged); 0 and -1 if
	// there is none.
	FixedLine  int          `json:"fixed_line,omitempty"`
	FixedEvent int          `json:"fixed_event"`
	Vars       []TraceValue `json:"vars,omitempty"` // privileged: the variables that differ, by name
}

// TraceValue is a variable that differs: a local variable, an attribute self.NAME or cls.NAME, or
// <return>, <exit> (a function that an exception ends) and <exception>. The values are fingerprints:
// texts of bounded length and depth, with a hash at the end if they were cut. "" means unbound.
type TraceValue struct {
	Name  string `json:"name"`
	Buggy string `json:"buggy"`
	Fixed string `json:"fixed"` // privileged
}

// TracedLines says which executions of a line in the buggy run were compared.
type TracedLines struct {
	File     string   `json:"file"`
	Function string   `json:"function"`
	Line     int      `json:"line"`
	Hits     [2]int   `json:"hits"`              // the first and the last hit that was compared
	Missing  [][2]int `json:"missing,omitempty"` // privileged: ranges of hits that the fixed run does not have
}

// Methods and verdicts of TraceCause.
const (
	CauseValue      = "value"      // copies of the fixed run's values were set
	CauseExpression = "expression" // a statement of the fixed version was evaluated in the buggy run
	CauseUnknown    = "unknown"    // also a verdict: no experiment was possible

	CauseSufficient   = "sufficient"   // the test passes
	CauseInsufficient = "insufficient" // the test still fails
)

// TraceCause is an experiment: variables of the buggy run get the values of the fixed run at one event.
type TraceCause struct {
	Event    int      `json:"event"` // of a point in Points or Chain
	File     string   `json:"file"`
	Function string   `json:"function"`
	Line     int      `json:"line"`
	Vars     []string `json:"vars"`
	Method   string   `json:"method"`
	Verdict  string   `json:"verdict"`
}

// CauseShares counts the experiments by method.
type CauseShares struct {
	Value      int `json:"value"`
	Expression int `json:"expression"`
	Unknown    int `json:"unknown"`
}

// At returns what the trace knows about the stop of a debugger in the buggy run: the given hit of a line, from 1.
// If known is true, reached says whether the fixed run makes this stop as well, and vars are the
// variables that differ there. The result is privileged.
func (p PairedTrace) At(file, function string, line, hit int) (vars []TraceValue, reached, known bool) {
	for _, s := range p.Stops {
		if s.File != file || s.Function != function || s.Line != line {
			continue
		}
		if hit < s.Hits[0] || hit > s.Hits[1] {
			return nil, false, false
		}
		if slices.ContainsFunc(s.Missing, func(r [2]int) bool { return r[0] <= hit && hit <= r[1] }) {
			return nil, false, true
		}
		for _, q := range p.Points {
			if q.Kind == "line" && q.File == file && q.Function == function && q.Line == line && q.Hit == hit {
				return q.Vars, true, true
			}
		}
		return nil, true, true
	}
	return nil, false, false
}
