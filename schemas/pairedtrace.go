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

	D0   *TracePoint `json:"d0,omitempty"`   // privileged: the first difference; nil = none was found
	Path []string    `json:"path,omitempty"` // privileged: the functions on the stack at D0, the outermost first, "file:qualified name"
	// Arguments are the fingerprints of the arguments with which the function of D0 was called (privileged).
	Arguments map[string]string `json:"arguments,omitempty"`
	Chain     []TracePoint      `json:"chain,omitempty"`   // privileged: D0, the calls, returns and changes of control flow after it that pass a difference on, and the failure
	Failure   *TracePoint       `json:"failure,omitempty"` // where the test failed, with the variables that differ there (privileged)

	// Points are the line events, calls and returns that both versions have and at which variables
	// differ (privileged). Stops says for which lines they are complete.
	Points []TracePoint  `json:"points,omitempty"`
	Stops  []TracedLines `json:"stops,omitempty"`
	// Matches relates places of the buggy run to those of the fixed run (privileged), as far as they were compared.
	Matches  []TraceMatch `json:"matches,omitempty"`
	Executed []string     `json:"executed,omitempty"` // functions of the buggy run, "file:qualified name"
	Masked   []string     `json:"masked,omitempty"`   // variables that differ between runs of one version, "file:function variable"

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
	Kind     string `json:"kind"` // call, line, return, exception; of D0: value or flow; of a link also flow (what runs next differs); of the last link: failure
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

// TraceCause is an experiment: variables of the buggy run get the values of the fixed run at one event, or at all events
// of the same place if that is not enough.
type TraceCause struct {
	Event    int      `json:"event"` // of a point in Points or Chain
	File     string   `json:"file"`
	Function string   `json:"function"`
	Line     int      `json:"line"`
	Vars     []string `json:"vars"`           // <return> and <exit> are how the function ends
	Hits     int      `json:"hits,omitempty"` // at how many executions of the line, or ends of the function, they were set
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

// TraceMatch relates executions of a line, or calls or returns at it, to those of the fixed run (privileged).
type TraceMatch struct {
	Kind      string `json:"kind"` // line, call or return
	File      string `json:"file"`
	Line      int    `json:"line"`
	FixedLine int    `json:"fixed_line"` // in lines of the fixed version
	// Hits are ranges of hits that correspond one by one: the first, the last, and the fixed run's hit that
	// corresponds to the first.
	Hits [][3]int `json:"hits"`
}

// Match returns the place and the hit of the fixed run that correspond to a hit of the buggy run. Without one,
// missing says that the fixed run does not have it, rather than that this is unknown. The result is privileged.
func (p PairedTrace) Match(kind, file string, line, hit int) (fixedLine, fixedHit int, ok, missing bool) {
	for _, m := range p.Matches {
		if m.Kind != kind || m.File != file || m.Line != line {
			continue
		}
		for _, h := range m.Hits {
			if h[0] <= hit && hit <= h[1] {
				return m.FixedLine, h[2] + hit - h[0], true, false
			}
		}
	}
	for _, s := range p.Stops {
		if kind == "line" && s.File == file && s.Line == line && slices.ContainsFunc(s.Missing, func(r [2]int) bool { return r[0] <= hit && hit <= r[1] }) {
			return 0, 0, false, true
		}
	}
	return 0, 0, false, false
}

// Ways in which a debugger prints a value.
const (
	ShowRepr   = "repr"
	ShowPretty = "pretty"
	ShowString = "string"
	ShowBrief  = "brief" // reprlib.repr, as pdb shows the value that a function returns
)

// TraceExpression is an expression, and how the debugger prints its value. The expression "return" is the value
// that a function returns.
type TraceExpression struct {
	Source string `json:"source"`
	Show   string `json:"show"`
}

// TraceQuery asks for values of expressions at executions of a line, or at calls or returns at it.
type TraceQuery struct {
	Kind        string            `json:"kind"` // line, call or return
	File        string            `json:"file"`
	Line        int               `json:"line"`
	Hits        []int             `json:"hits"`     // empty = the first ones
	Up          int               `json:"up"`       // evaluate them in the frame that is so many frames above
	Function    string            `json:"function"` // bare name of that frame's function
	Expressions []TraceExpression `json:"expressions"`
}

// TraceReply has the values of a query's expressions at one hit.
type TraceReply struct {
	Query  int // index
	Hit    int
	Depth  int // frames on the stack
	Values []TraceText
}

// TraceText is a value as the debugger prints it.
type TraceText struct {
	Text  string
	Print string // fingerprint of the value, as in TraceValue
	Error string // the type of the exception, if there is no value
}
