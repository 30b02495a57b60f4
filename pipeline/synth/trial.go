package synth

import (
	"regexp"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
)

// Outcome is the result of a candidate.
type Outcome string

// The outcomes, in the order of the checks.
const (
	Refused    Outcome = "refused"       // it could not be applied, or changes nothing
	Collect    Outcome = "collect"       // the tests can no longer be collected
	Hang       Outcome = "hang"          // the tests run out of time
	Crash      Outcome = "crash"         // the test runner did not finish
	Survived   Outcome = "survived"      // every test still passes
	BreaksAll  Outcome = "breaks_all"    // more than half of the tests fail
	Litters    Outcome = "litters"       // the tests leave files that they do not leave in the healthy tree
	Flaky      Outcome = "flaky"         // two runs gave different verdicts
	NoTrace    Outcome = "no_divergence" // the failing test executes the same with and without the bug
	Valid      Outcome = "valid"
	Duplicate  Outcome = "duplicate"  // valid, but the same code as another
	Equivalent Outcome = "equivalent" // valid, but behaves like another
	Capped     Outcome = "capped"     // valid, but there are enough similar ones
	// OtherDifficulty is the outcome of a valid bug whose difficulty was not requested.
	OtherDifficulty Outcome = "other_difficulty"
	Unverified      Outcome = "unverified" // the verifier did not confirm it
	Released        Outcome = "released"   // a task
)

// Outcomes lists all outcomes.
var Outcomes = []Outcome{Refused, Collect, Hang, Crash, Survived, BreaksAll, Litters, Flaky, NoTrace, Valid, Duplicate, Equivalent, OtherDifficulty, Capped, Unverified, Released}

// Trial is the result of one candidate, a line of the journal.
type Trial struct {
	Repo      string   `json:"repo"`
	Key       string   `json:"key"` // identifies the candidate within its repository
	Kind      string   `json:"kind"`
	Operators []string `json:"operators"`
	Sites     []string `json:"sites"` // file:line
	Funcs     []string `json:"funcs"` // path::qualified name
	Outcome   Outcome  `json:"outcome"`
	Reason    string   `json:"reason,omitempty"`

	Commit       string `json:"commit,omitempty"`        // reverted by the bug
	Model        string `json:"model,omitempty"`         // that wrote the bug
	PromptSHA256 string `json:"prompt_sha256,omitempty"` // of its prompt

	Patch      string             `json:"patch,omitempty"` // healthy -> buggy
	Body       string             `json:"body,omitempty"`  // hash of the changed functions, without their files and other irrelevant details
	Shape      string             `json:"shape,omitempty"` // hash of the change, equal in copies of the functions
	Lines      map[string][]int   `json:"lines,omitempty"` // changed lines of the buggy files
	FailToPass []string           `json:"fail_to_pass,omitempty"`
	Verdicts   vector             `json:"verdicts,omitempty"` // on the failing tests
	Failures   []Failure          `json:"failures,omitempty"`
	Divergence string             `json:"divergence,omitempty"` // file:line name of the first difference in execution between bug and fix
	Difficulty schemas.Difficulty `json:"difficulty"`
	Runs       int                `json:"runs"`
	Vectors    []vector           `json:"vectors,omitempty"` // the two that differ, if flaky
	Seconds    float64            `json:"seconds"`
	CPU        float64            `json:"cpu_seconds"`
}

// vector is the verdict on each kept test that did not pass.
type vector map[string]string

const missing = "missing"

// clone returns a copy, so that choosing does not change the journal's record.
func (t *Trial) clone() *Trial {
	c := *t
	return &c
}

// elsewhere begins the reason of a duplicate of a task of another repository.
const elsewhere = "the same functions are in "

// because returns a trial's reason without details of this trial; "" if the outcome is
// reason enough.
func (t *Trial) because() string {
	switch t.Outcome {
	case Refused, Crash, Unverified:
		return aboutSize.ReplaceAllString(aboutFile.ReplaceAllString(t.Reason, ""), "N")
	case Survived:
		return t.Reason
	case Duplicate:
		if strings.HasPrefix(t.Reason, elsewhere) {
			return "of a function that is also in another repository"
		}
	case Capped:
		if m := aboutCap.FindStringSubmatch(t.Reason); m != nil && m[2] == "" {
			return m[1] + "one operator in a function"
		} else if m != nil {
			return m[1] + "a " + m[2]
		}
		return t.Reason
	}
	return ""
}

// Sound reports whether a candidate passed its trial, even if it did not become a task.
func (o Outcome) Sound() bool {
	return slices.Contains([]Outcome{Valid, Duplicate, Equivalent, OtherDifficulty, Capped, Unverified, Released}, o)
}

var aboutFile = regexp.MustCompile(`^\S+\.py: `)

var aboutSize = regexp.MustCompile(`\d+`)

var aboutCap = regexp.MustCompile(`^(\d+ of )(?:(function|file) .*|\S+ in .*)$`)
