package synth

import (
	"regexp"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
)

// Outcome is the result of a candidate.
type Outcome string

// The outcomes.
const (
	Refused       Outcome = "refused"       // it cannot be applied, changes nothing, or its parts undo each other
	Collect       Outcome = "collect"       // the tests can no longer be collected
	Hang          Outcome = "hang"          // the tests run out of time
	Crash         Outcome = "crash"         // the test runner did not finish
	Survived      Outcome = "survived"      // every test still passes
	BreaksTooMany Outcome = "breaks_all"    // more tests fail than Config.MaxFailing allows
	Litters       Outcome = "litters"       // the tests leave files that they do not leave in the healthy tree
	Flaky         Outcome = "flaky"         // runs gave different verdicts, or all failing tests are unreliable
	NoDivergence  Outcome = "no_divergence" // the failing test executes the same with and without the bug
	Valid         Outcome = "valid"
	Duplicate     Outcome = "duplicate"  // valid, but its code equals that of another bug
	Equivalent    Outcome = "equivalent" // valid, but it behaves like another bug
	Capped        Outcome = "capped"     // valid, but there are enough similar bugs
	// OtherDifficulty is the outcome of a valid bug whose difficulty was not requested.
	OtherDifficulty Outcome = "other_difficulty"
	Leaking         Outcome = "leak"       // valid, but the repository contains the fix in another place
	Unverified      Outcome = "unverified" // the verifier did not confirm it
	Released        Outcome = "released"   // a task
)

// Outcomes lists all outcomes.
var Outcomes = []Outcome{Refused, Collect, Hang, Crash, Survived, BreaksTooMany, Litters, Flaky, NoDivergence, Valid, Duplicate, Equivalent, OtherDifficulty, Capped, Leaking, Unverified, Released}

// Trial is the result of one candidate. It is a line of the journal.
type Trial struct {
	Repo      string   `json:"repo"`
	Key       string   `json:"key"` // identifies the candidate within its repository
	Kind      string   `json:"kind"`
	Operators []string `json:"operators"`
	Sites     []string `json:"sites"` // file:line
	Funcs     []string `json:"funcs"` // path::qualified name
	Outcome   Outcome  `json:"outcome"`
	Reason    string   `json:"reason,omitempty"`

	Commit       string `json:"commit,omitempty"`        // the commit that the bug reverts
	Model        string `json:"model,omitempty"`         // the model that wrote the bug
	PromptSHA256 string `json:"prompt_sha256,omitempty"` // hash of the model's prompt

	Patch      string           `json:"patch,omitempty"` // healthy -> buggy
	Body       string           `json:"body,omitempty"`  // hash of the changed functions, without file names
	Shape      string           `json:"shape,omitempty"` // hash of the change, equal in copies of the functions
	Lines      map[string][]int `json:"lines,omitempty"` // changed lines of the buggy files
	FailToPass []string         `json:"fail_to_pass,omitempty"`
	Verdicts   nonPassing       `json:"verdicts,omitempty"` // status of each test in FailToPass
	Failures   []Failure        `json:"failures,omitempty"`
	// Divergence is the first difference between executions with and without the bug: "file:line", then
	// the names of the variables that differ.
	Divergence    string             `json:"divergence,omitempty"`
	Difficulty    schemas.Difficulty `json:"difficulty"`
	Runs          int                `json:"runs"`
	DifferingRuns []nonPassing       `json:"vectors,omitempty"` // the two runs that disagree, if flaky
	Seconds       float64            `json:"seconds"`
	CPU           float64            `json:"cpu_seconds"`
}

// nonPassing maps each reliable test that did not pass in a run to its status.
type nonPassing map[string]string

// missing is the status of a test that did not run.
const missing = "missing"

// clone returns a shallow copy, so that later phases do not change the journal's record.
func (t *Trial) clone() *Trial {
	c := *t
	return &c
}

// inOtherRepo starts the reason of a trial that duplicates a task of another repository.
const inOtherRepo = "the same functions are in "

// goldFails starts the reason of a trial whose gold patch does not resolve the task. The names of the tests follow.
const goldFails = "the gold patch does not resolve it: "

// generalReason returns a trial's reason without the details of this trial, so that the summary
// can count equal reasons; "" if the outcome says enough.
func (t *Trial) generalReason() string {
	switch t.Outcome {
	case Refused, Crash, Unverified:
		if strings.HasPrefix(t.Reason, goldFails) {
			return strings.TrimSuffix(goldFails, ": ")
		}
		return anyNumber.ReplaceAllString(filePrefix.ReplaceAllString(t.Reason, ""), "N")
	case Survived:
		return t.Reason
	case Duplicate:
		if strings.HasPrefix(t.Reason, inOtherRepo) {
			return "of a function that is also in another repository"
		}
	case Capped:
		if m := capReason.FindStringSubmatch(t.Reason); m != nil && m[2] == "" {
			return m[1] + "an operator in a function" + m[3]
		} else if m != nil {
			return m[1] + "a " + m[2] + m[3]
		}
		return t.Reason
	}
	return ""
}

// IsValid reports whether a candidate passed its trial, even if it did not become a task.
func (o Outcome) IsValid() bool {
	return slices.Contains([]Outcome{Valid, Duplicate, Equivalent, OtherDifficulty, Capped, Leaking, Unverified, Released}, o)
}

var filePrefix = regexp.MustCompile(`^\S+\.py: `)

var anyNumber = regexp.MustCompile(`\d+`)

var capReason = regexp.MustCompile(`^(the cap of \d+ for )(?:(line|function|file) .*|\S+ in .*)( is reached)$`)
