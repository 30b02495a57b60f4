package trace

// Kinds of Divergence.
const (
	ValueDivergence = "value" // the runs are at the same line, but a variable differs
	FlowDivergence  = "flow"  // the runs are at different lines, calls, returns or exceptions
)

// Divergence is the first point at which two runs differ.
type Divergence struct {
	Kind string `json:"kind"`
	// Place is the position of the buggy run, in lines of the buggy version: a call, a
	// return or an exception at this line, or the line that runs next.
	Place
	After   int          `json:"after,omitempty"` // the line that the same frame ran last; 0 = none
	Event   int          `json:"event"`           // number of the event in the buggy run
	Depth   int          `json:"depth"`           // stack frames of the program, including this one
	Vars    []Difference `json:"vars,omitempty"`  // value divergences only: the differing variables, by name
	Visible int          `json:"visible"`         // number of variables in the frame
	Other   *Place       `json:"other,omitempty"` // flow divergences only: position of the fixed run, in its lines
}

// Difference is a variable whose value differs between the two runs. The value is "" if the
// variable is unbound. A name is that of a local variable, self.NAME, <return> or <exception>.
type Difference struct {
	Name  string `json:"name"`
	Buggy string `json:"buggy"`
	Fixed string `json:"fixed"` // privileged: never shown to a model
}
