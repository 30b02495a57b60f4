package synth

import "github.com/tracesmith/tracesmith/schemas"

// survey is the result of surveying a healthy repository: how its tests behave, and the candidates
// that were drawn. It is a line of the journal.
type survey struct {
	Repo         string   `json:"repo"`
	Refused      string   `json:"refused,omitempty"` // why the repository cannot be used
	Method       string   `json:"method,omitempty"`
	Kept         []string `json:"kept,omitempty"`            // tests that pass in every run, sorted
	Seconds      float64  `json:"seconds,omitempty"`         // duration of the slowest run in a bench
	CPU          float64  `json:"cpu_seconds,omitempty"`     // of all runs of the survey
	RunCPU       float64  `json:"run_cpu_seconds,omitempty"` // of one run of all tests
	Unrepeatable []string `json:"once,omitempty"`            // tests that do not pass a second time in the same sandbox
	NotAlone     int      `json:"not_alone,omitempty"`       // tests that did not run alone, because the time was used up
	Litter       []string `json:"litter,omitempty"`          // files that its tests leave behind
	Coverage     coverage `json:"-"`                         // stored in the line of its survey part
	Sites        int      `json:"sites,omitempty"`           // number of possible mutations
	// Operators maps the ID of each mutation operator to its name.
	Operators map[string]string `json:"operators,omitempty"`
	Note      string            `json:"note,omitempty"` // why a kind of candidates is missing
	// Calls lists the functions that each function calls, for composing bugs along calls.
	Calls map[string][]string `json:"calls,omitempty"`
	// Drawn are the candidates in order, except composed ones.
	Drawn []candidate `json:"drawn,omitempty"`
}

// release is the result of a chosen trial's release checks. It is a line of the journal.
type release struct {
	Repo          string       `json:"repo"`
	Key           string       `json:"key"`
	Outcome       Outcome      `json:"outcome"`
	Reason        string       `json:"reason,omitempty"`
	DifferingRuns []nonPassing `json:"vectors,omitempty"`
	// FailToPass are the tests that fail in every run.
	FailToPass []string          `json:"fail_to_pass,omitempty"`
	Runs       int               `json:"runs"`
	Gold       string            `json:"gold,omitempty"`
	Tree       string            `json:"tree,omitempty"` // sha256 of the buggy tree
	Texts      map[string]string `json:"texts,omitempty"`
	// Leaks maps each missing text to the linter's first finding, or to the reason why the model wrote none.
	Leaks map[string]string `json:"leaks,omitempty"`
	// CPU is the CPU time of the runs in seconds. The verifier does not measure its runs; each of them
	// counts as one run of all tests.
	CPU float64 `json:"cpu_seconds"`
}

// modelAnswer is a model's answer. It is a line of the journal, so that the same question
// is never asked again.
type modelAnswer struct {
	Repo         string          `json:"repo"`
	Key          string          `json:"key"` // of the candidate, or reportKey of that
	Model        string          `json:"model"`
	PromptSHA256 string          `json:"prompt_sha256"`
	Answer       string          `json:"answer"`
	Refused      string          `json:"refused,omitempty"` // why there is no answer
	Payment      schemas.Payment `json:"payment"`
}

// surveyPart is one finished part of a survey. It is a line of the journal, so that an interrupted
// survey repeats only the parts that had not finished.
type surveyPart struct {
	Repo   string `json:"repo"`
	Name   string `json:"name"`
	Method string `json:"method,omitempty"` // of the first piece
	// Tests are the tests that passed, sorted, if this is the first run; those that ran, if this is a
	// part that runs tests alone.
	Tests        []string   `json:"tests,omitempty"`
	Bad          nonPassing `json:"bad,omitempty"`    // verdicts on the tests that did not pass
	Unrepeatable []string   `json:"once,omitempty"`   // tests that do not pass a second time in the same sandbox
	Leftovers    []string   `json:"left,omitempty"`   // files that the run left in the tree
	Broken       string     `json:"broken,omitempty"` // why the run gave no verdicts
	Coverage     *coverage  `json:"coverage,omitempty"`
	Seconds      float64    `json:"seconds"`
	CPU          float64    `json:"cpu_seconds"`
}

// forgery is the result of trying a kind of patch that fixes nothing. All tasks of a repository have the
// same test files and settings, so only one of them is tried. It is a line of the journal.
type forgery struct {
	Repo    string  `json:"repo"`
	Kind    string  `json:"kind"`     // one of forgeryKinds
	Key     string  `json:"key"`      // of the trial whose task was tried
	Problem string  `json:"resolves"` // why no task of the repository can be used, such as that the patch resolves one; "" if all can
	CPU     float64 `json:"cpu_seconds"`
}

// overhead is the CPU time of one run of the factory that belongs to no other line of the journal: of
// the program itself, git, the mutators, and interrupted jobs. It is a line of the journal.
type overhead struct {
	CPU float64 `json:"cpu_seconds"`
}

// unreliable lists tests that gave different verdicts in runs of the same code. No task of the
// repository uses them. It is a line of the journal.
type unreliable struct {
	Repo    string   `json:"repo"`
	Tests   []string `json:"tests"`
	Key     string   `json:"key"`               // of the candidate whose runs gave different verdicts
	Release bool     `json:"release,omitempty"` // found after the tasks were chosen
}
