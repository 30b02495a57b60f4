package synth

import "github.com/tracesmith/tracesmith/schemas"

// survey is the result of running a healthy repository's tests, a line of the journal.
type survey struct {
	Repo     string   `json:"repo"`
	Refused  string   `json:"refused,omitempty"` // why the repository cannot be used
	Method   string   `json:"method,omitempty"`
	Kept     []string `json:"kept,omitempty"`            // tests that pass in every run, sorted
	Seconds  float64  `json:"seconds,omitempty"`         // duration of the slowest run in a bench
	CPU      float64  `json:"cpu_seconds,omitempty"`     // of all runs of the survey
	RunCPU   float64  `json:"run_cpu_seconds,omitempty"` // of one run of all tests
	Once     []string `json:"once,omitempty"`            // tests that do not pass again in the same place
	Litter   []string `json:"litter,omitempty"`          // files that its tests leave
	Coverage coverage `json:"-"`                         // of a piece
	Sites    int      `json:"sites,omitempty"`           // number of possible mutations
	// Operators are the names of the mutation operators, by id.
	Operators map[string]string `json:"operators,omitempty"`
	Note      string            `json:"note,omitempty"` // what could not be searched
	// Calls are the functions that each function calls, for composing bugs along calls.
	Calls map[string][]string `json:"calls,omitempty"`
	// Drawn are the candidates in order, except composed ones.
	Drawn []candidate `json:"drawn,omitempty"`
}

// release is the result of a chosen trial's release checks, a line of the journal.
type release struct {
	Repo    string   `json:"repo"`
	Key     string   `json:"key"`
	Outcome Outcome  `json:"outcome"` // Released, Flaky, Litters, Unverified
	Reason  string   `json:"reason,omitempty"`
	Vectors []vector `json:"vectors,omitempty"`
	// FailToPass are the tests that fail in every run.
	FailToPass []string          `json:"fail_to_pass,omitempty"`
	Runs       int               `json:"runs"`
	Gold       string            `json:"gold,omitempty"`
	Tree       string            `json:"tree,omitempty"` // sha256 of the buggy tree
	Texts      map[string]string `json:"texts,omitempty"`
	Leaks      map[string]string `json:"leaks,omitempty"` // rejected text -> reason of the linter
	// CPU is the CPU time of the runs. Those of the verifier, which does not measure it, count as
	// that of a run of all tests.
	CPU float64 `json:"cpu_seconds"`
}

// modelAnswer is a model's answer: a line of the journal, so that it is never asked for
// again.
type modelAnswer struct {
	Repo         string          `json:"repo"`
	Key          string          `json:"key"` // the candidate's, or textKey of it
	Model        string          `json:"model"`
	PromptSHA256 string          `json:"prompt_sha256"`
	Answer       string          `json:"answer"`
	Refused      string          `json:"refused,omitempty"` // why there is no answer
	Payment      schemas.Payment `json:"payment"`
}

// piece is one finished part of a survey, a line of the journal: an interrupted survey repeats only
// the parts that were under way.
type piece struct {
	Repo   string `json:"repo"`
	Name   string `json:"name"`
	Method string `json:"method,omitempty"` // of the first piece
	// Tests are those that pass in the first piece, sorted; of the others, those that ran.
	Tests    []string  `json:"tests,omitempty"`
	Bad      vector    `json:"bad,omitempty"`  // verdicts on the tests that did not pass
	Once     []string  `json:"once,omitempty"` // tests that do not pass again in the same place
	Left     []string  `json:"left,omitempty"`
	Broken   string    `json:"broken,omitempty"` // why the run gave no verdicts
	Coverage *coverage `json:"coverage,omitempty"`
	Seconds  float64   `json:"seconds"`
	CPU      float64   `json:"cpu_seconds"` // 0 for the first run, which is not measured
}

// forgery is a line of the journal: whether a kind of patch that fixes nothing resolves tasks of a
// repository. The tasks of a repository have the same test files and settings, so one of them
// stands for all.
type forgery struct {
	Repo     string  `json:"repo"`
	Kind     string  `json:"kind"`     // one of check.Cheats
	Key      string  `json:"key"`      // of the trial whose task was tried
	Resolves string  `json:"resolves"` // the patch; "" if none resolves the task
	CPU      float64 `json:"cpu_seconds"`
}

// unreliable is a line of the journal: tests that gave different verdicts in runs of the same code.
// No task of the repository lists them.
type unreliable struct {
	Repo    string   `json:"repo"`
	Tests   []string `json:"tests"`
	Key     string   `json:"key"`               // of the candidate whose runs differ
	Release bool     `json:"release,omitempty"` // found after the tasks were chosen
}
