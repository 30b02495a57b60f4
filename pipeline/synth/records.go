package synth

import "github.com/tracesmith/tracesmith/schemas"

// survey is what a healthy repository's own runs tell: a line of the journal.
type survey struct {
	Repo     string   `json:"repo"`
	Refused  string   `json:"refused,omitempty"` // why no bug is put into it
	Method   string   `json:"method,omitempty"`
	Kept     []string `json:"kept,omitempty"`    // tests that pass in every run, sorted
	Seconds  float64  `json:"seconds,omitempty"` // of the slowest run in a bench
	Litter   []string `json:"litter,omitempty"`  // what its tests leave behind
	Coverage coverage `json:"coverage,omitempty"`
	Sites    int      `json:"sites,omitempty"` // where a mutation is possible
	Note     string   `json:"note,omitempty"`  // what could not be looked for
	// Calls are the functions that functions call, for compositions of chains.
	Calls map[string][]string `json:"calls,omitempty"`
	// Drawn are the candidates that are tried first, in order: all but composed ones.
	Drawn []candidate `json:"drawn,omitempty"`
}

// release is what the last checks said of a chosen trial: a line of the journal.
type release struct {
	Repo    string            `json:"repo"`
	Key     string            `json:"key"`
	Outcome Outcome           `json:"outcome"` // Released, Flaky, Litters, Unverified
	Reason  string            `json:"reason,omitempty"`
	Vectors []vector          `json:"vectors,omitempty"`
	Runs    int               `json:"runs"`
	Gold    string            `json:"gold,omitempty"`
	Tree    string            `json:"tree,omitempty"` // sha256 of the buggy tree
	Texts   map[string]string `json:"texts,omitempty"`
	Leaks   map[string]string `json:"leaks,omitempty"` // texts that the linter refused -> why
}

// spoken is a model's answer: a line of the journal, so that it is never asked for
// again.
type spoken struct {
	Repo         string          `json:"repo"`
	Key          string          `json:"key"` // the candidate's, or textKey of it
	Model        string          `json:"model"`
	PromptSHA256 string          `json:"prompt_sha256"`
	Answer       string          `json:"answer"`
	Refused      string          `json:"refused,omitempty"` // why there is no answer
	Payment      schemas.Payment `json:"payment"`
}
