package hostile

import (
	"slices"
	"time"
)

// Door is the way a case comes in.
type Door string

// The doors. A case's text is, in this order: a bash command; a Python program
// under the debugger, driven by Commands; a script that the task's tests run; a
// bash script run by the sandbox itself.
const (
	Bash Door = "bash"
	Pdb  Door = "pdb"
	Eval Door = "eval"
	Run  Door = "run"
)

// Case is one adversarial command.
type Case struct {
	Name string
	Door Door
	Text string
	// Make makes the text of a long case when it is played: a program pays for
	// what stands here at its every start.
	Make func() string
	// Commands are sent to the debugger one by one; nil is "c". The last one's
	// answer is judged.
	Commands []string
	// Limit of the call in whole seconds; 0 = DefaultLimit.
	Limit time.Duration
	Want  Want
	// Rare is how many times less often than others the soak plays it, because
	// of what it costs; 0 = 1.
	Rare int
	// Harmless cases are also played where nothing isolates.
	Harmless bool
	// Leaves: what it left running is meant to live on, as background jobs do.
	Leaves bool
	// Spoils: the workspace, the home or the shell's settings are not what they
	// were; after the probes the place is made anew.
	Spoils bool
}

func (c Case) text() string {
	if c.Make != nil {
		return c.Make()
	}
	return c.Text
}

// DefaultLimit is the limit of a case that names none.
const DefaultLimit = 20 * time.Second

// Want is what an answer must hold.
type Want struct {
	Exit     []int // allowed exit codes; nil: any, or none
	Time     Time
	Has      []string
	Lacks    []string
	MaxBytes int // of the text; 0 = no bound
}

// Time says whether the limit may end a case.
type Time int

// Values of Time.
const (
	InTime Time = iota
	TimesOut
	Either
)

func (c Case) limit() time.Duration {
	if c.Limit == 0 {
		return DefaultLimit
	}
	return c.Limit
}

// Corpus is every case.
func Corpus() []Case {
	return slices.Concat(framingCases, shellCases, processCases, limitCases, outputCases, debuggerCases, evalCases, runCases)
}

// exits is a list of allowed exit codes.
func exits(codes ...int) []int { return codes }
