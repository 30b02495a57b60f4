package metrics

import "github.com/tracesmith/tracesmith/schemas"

// Evidence is what the metrics of information seeking are computed from, besides the rows.
type Evidence struct {
	Patch     *Patch                // of the agent; nil if unknown
	Gold      *Patch                // nil if the task has none
	Functions map[string][]Function // functions of the Python files of base, by path; nil if unknown
}

// Seeking holds what an agent looked at, and how that compares with the reference fix. A nil pointer
// is unknown or not applicable. docs/decisions/metrics.md defines each value. The parts that depend
// on the fix are Gold and what GoldNew returns.
type Seeking struct {
	Redundancy        *float64 // C6
	BreakpointsValid  *float64 // B1
	BreakpointsHit    *float64 // B2
	DeadInspections   *float64 // V4
	InvalidCalls      *float64 // P2
	LongestCommandRun *int32   // P3
	LongestCallRun    *int32   // P3
	BlindEdits        *int32   // P4
	Pack              *string  // text of the handed-over pack, for counting its tokens
	Gold              *GoldSeeking

	steps []stepCount
}

// stepCount counts the lines that a step showed. known is false if its format is unknown.
type stepCount struct {
	row               int
	known             bool
	shown, new, found int
}

// GoldSeeking compares what the agent looked at with the reference fix. It is the value of column gold_seeking_json.
type GoldSeeking struct {
	File     *Level `json:"file,omitempty"`
	Function *Level `json:"function,omitempty"`
	Line     *Level `json:"line,omitempty"`

	EvidenceDrop *float64  `json:"evidence_drop,omitempty"` // C7
	Declared     *Declared `json:"declared,omitempty"`
	Pack         *PackSeen `json:"pack,omitempty"`

	RootHit            *bool    `json:"root_hit,omitempty"`            // B3
	RootLineHit        *bool    `json:"root_line_hit,omitempty"`       // B3l
	BreakpointsToRoot  *int32   `json:"breakpoints_to_root,omitempty"` // B4
	StepsToRoot        *int32   `json:"steps_to_root,omitempty"`       // B4
	BreakpointDistance *int32   `json:"breakpoint_distance,omitempty"` // B5
	UsefulSteps        *float64 `json:"useful_steps,omitempty"`        // P6
}

// Declared compares the location of the bug that an agent declares with the fix. That location is
// what its patch changes or, without a patch, the files of its handover.
type Declared struct {
	File     *float64 `json:"file,omitempty"` // F1
	Function *float64 `json:"function,omitempty"`
	Line     *float64 `json:"line,omitempty"`
	Sum      *float64 `json:"sum,omitempty"`
	// FunctionRank is a reciprocal rank: 1 / the position of the first declared function that the fix
	// changes, or 0 if none was declared.
	FunctionRank *float64 `json:"function_rank,omitempty"`
	NDCG5        *float64 `json:"ndcg5,omitempty"`
}

// PackSeen compares the code of a handover with the fix.
type PackSeen struct {
	File       *Level `json:"file,omitempty"`
	Function   *Level `json:"function,omitempty"`
	Line       *Level `json:"line,omitempty"`
	Sufficient *bool  `json:"sufficient,omitempty"` // all changed lines are in it
}

// packSeen is the content of a handover.
type packSeen struct {
	lines map[linePlace]bool
	order []string // functions, in the order of the excerpts
	text  string
}

// seeker follows an episode step by step.
type seeker struct {
	Evidence
	*Episode
	gold    *goldSet // nil if there is no fix to compare with
	base    *baseMap
	files   map[string]*fileSeen
	current string // path of the file in last; most lines are of the same file, and need no look-up
	last    *fileSeen

	t                          int // number of the agent's steps
	steps                      []stepCount
	shown, again               int // lines shown; those among them that an earlier step had shown
	opaque                     bool
	foundLines, foundFunctions int
	seenLines, seenFunctions   int
	foundFiles                 int
	first                      [3]int // steps that first showed a file, a function and a line of the fix
	area                       [3]int // files, functions and lines of the fix found so far, summed over all steps
	useful                     int
	lastResult                 *evaluation

	texts      map[linePlace]string // texts of the gold lines that were seen
	edited     map[linePlace]bool
	editOrder  []string // functions in the order of their first edits
	blindEdits int
	edits      int
	pack       *packSeen
	debugState
	process
}

// fileSeen holds what an agent has seen of a file of base.
type fileSeen struct {
	lastShown []int32 // number of the last step that showed a line, by line; 0 if none did
	functions []bool  // seen, by index of Function
	owner     []int32 // index of the innermost function + 1, by line; nil if the functions are unknown
	gold      *goldFile
}

// has reports whether a line was seen.
func (f *fileSeen) has(n int) bool { return n < len(f.lastShown) && f.lastShown[n] > 0 }

// evaluation is the result of an evaluation of the tests.
type evaluation struct {
	score          float64
	passed, failed int32
}

// debugState follows the breakpoints, pauses and inspections of an episode.
type debugState struct {
	used                bool // a debugger call was executed
	requested, accepted int
	points              []breakpoint // distinct
	inspections, dead   int
	inspected           map[string]bool    // expressions of the current pause
	pause               schemas.Breakpoint // File and Line of the current frame
	rootStep            int                // step of the first pause in a function of the fix
	rootPoints          int                // number of breakpoints set by that step
	lineHit             bool
}

// breakpoint is an accepted breakpoint. line is a line number of base if base has that line, else of the current file.
type breakpoint struct {
	file string
	line int
	hit  bool
}

// process counts the calls of an episode, those that were rejected, and successive calls that are equal or have the
// same command.
type process struct {
	calls, invalid                  int
	unknownErrors                   bool // it is unknown whether some call failed
	lastCommand, lastCall           string
	equalCommands, equalCalls       int // successive ones so far
	maxEqualCommands, maxEqualCalls int
}
