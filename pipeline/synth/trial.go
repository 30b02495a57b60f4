package synth

import (
	"regexp"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
)

// Outcome is the word for what became of a candidate; the list is closed.
type Outcome string

// The outcomes, in the order in which they are looked for.
const (
	Refused    Outcome = "refused"       // it could not be applied, or changes nothing
	Collect    Outcome = "collect"       // the tests can no longer be collected
	Hang       Outcome = "hang"          // the tests run out of time
	Crash      Outcome = "crash"         // the test runner did not come to its end
	Survived   Outcome = "survived"      // every test still passes
	BreaksAll  Outcome = "breaks_all"    // more than half of the tests fail
	Litters    Outcome = "litters"       // the tests leave files behind that they did not leave before
	Flaky      Outcome = "flaky"         // two runs gave different verdicts
	NoTrace    Outcome = "no_divergence" // the failing test does the same with the bug and without
	Valid      Outcome = "valid"
	Duplicate  Outcome = "duplicate"  // valid, but the same code as another
	Equivalent Outcome = "equivalent" // valid, but not to be told from another by what it does
	Capped     Outcome = "capped"     // valid, but there are enough like it
	Unverified Outcome = "unverified" // the verifier did not confirm it
	Released   Outcome = "released"   // a task
)

// Outcomes lists all of them.
var Outcomes = []Outcome{Refused, Collect, Hang, Crash, Survived, BreaksAll, Litters, Flaky, NoTrace, Valid, Duplicate, Equivalent, Capped, Unverified, Released}

// Trial is what became of one candidate: a line of the journal.
type Trial struct {
	Repo      string   `json:"repo"`
	Key       string   `json:"key"` // what it is, unique within its repository
	Kind      string   `json:"kind"`
	Operators []string `json:"operators"`
	Sites     []string `json:"sites"` // file:line
	Funcs     []string `json:"funcs"` // path::qualified name
	Outcome   Outcome  `json:"outcome"`
	Reason    string   `json:"reason,omitempty"`

	Commit       string `json:"commit,omitempty"`        // that the bug takes back
	Model        string `json:"model,omitempty"`         // that wrote it, and
	PromptSHA256 string `json:"prompt_sha256,omitempty"` // of what it was asked

	Patch      string             `json:"patch,omitempty"` // healthy -> buggy
	Body       string             `json:"body,omitempty"`  // hash of the changed functions without what does not matter, such as their files
	Lines      map[string][]int   `json:"lines,omitempty"` // of the buggy files, that differ
	FailToPass []string           `json:"fail_to_pass,omitempty"`
	Failures   []Failure          `json:"failures,omitempty"`
	Divergence string             `json:"divergence,omitempty"` // file:line name, where bug and fix part
	Difficulty schemas.Difficulty `json:"difficulty"`
	Runs       int                `json:"runs"`
	Vectors    []vector           `json:"vectors,omitempty"` // of a flaky one: the two that differ
	Seconds    float64            `json:"seconds"`
}

// vector is the verdict on each kept test that did not pass.
type vector map[string]string

const missing = "missing"

// clone keeps the journal's record of a trial from what is chosen later.
func (t *Trial) clone() *Trial {
	c := *t
	return &c
}

// elsewhere begins the reason of a duplicate in another repository.
const elsewhere = "the same functions are in "

// because is a trial's reason without what is of this trial alone; "" where the
// outcome says it all.
func (t *Trial) because() string {
	switch t.Outcome {
	case Refused, Crash, Unverified:
		return aboutSize.ReplaceAllString(aboutFile.ReplaceAllString(t.Reason, ""), "N")
	case Survived:
		return t.Reason
	case Duplicate:
		if strings.HasPrefix(t.Reason, elsewhere) {
			return "of a function that is in another repository, too"
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

// Sound says that a candidate passed its trial, whether it became a task or not.
func (o Outcome) Sound() bool {
	return slices.Contains([]Outcome{Valid, Duplicate, Equivalent, Capped, Unverified, Released}, o)
}

var aboutFile = regexp.MustCompile(`^\S+\.py: `)

var aboutSize = regexp.MustCompile(`\d+`)

var aboutCap = regexp.MustCompile(`^(\d+ of )(?:(function|file) .*|\S+ in .*)$`)
