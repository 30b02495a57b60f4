package hostile

import (
	"slices"
	"time"
)

// Surface is the part of an environment that a case attacks.
type Surface string

// The surfaces, and what the text of a case is for each.
const (
	Bash Surface = "bash" // a command of tool bash
	Pdb  Surface = "pdb"  // a Python program that Commands debug
	Eval Surface = "eval" // a script that the task's tests run
	Run  Surface = "run"  // a bash script that the sandbox runs
)

// Case is one adversarial command.
type Case struct {
	Name    string
	Surface Surface
	Text    string
	// Make returns the text of a long case, so that the text does not take memory in
	// programs that do not run it.
	Make func() string
	// Commands are the debugger commands; nil means "c". Want applies to the answer to
	// the last one.
	Commands []string
	// Limit is the timeout of the call in whole seconds; 0 = DefaultLimit.
	Limit time.Duration
	Want  Want
	// Rare makes the soak run an expensive case this many times less often; 0 means 1.
	Rare int
	// Harmless means that the case cannot harm the host, so that it also runs without isolation.
	Harmless bool
	// Leaves means that processes of the case may keep running, like background jobs.
	Leaves bool
	// Damages means that the case damages the workspace, the home directory or the
	// shell's settings. The harness is reset after it.
	Damages bool
}

func (c Case) text() string {
	if c.Make != nil {
		return c.Make()
	}
	return c.Text
}

// DefaultLimit is the limit of cases without one.
const DefaultLimit = 20 * time.Second

// Want is the expected answer.
type Want struct {
	Exit     []int // allowed exit codes; nil: any or none
	Time     Time
	Has      []string
	Lacks    []string
	MaxBytes int // maximum length of the text; 0 = no limit
}

// Time says whether a case may or must time out.
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

// Corpus returns all cases.
func Corpus() []Case {
	return slices.Concat(framingCases, shellCases, processCases, limitCases, outputCases, debuggerCases, evalCases, runCases)
}

// exits returns a list of allowed exit codes.
func exits(codes ...int) []int { return codes }
