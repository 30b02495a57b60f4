package schemas

// Splits are the values of the column split.
var Splits = []string{"train", "validation", "test", "holdout"}

// Origin says where a task's bug comes from. What leads to the bug (Operator,
// Operators, Seed, Site, Commit, PromptSHA256) is privileged: Task.Public drops it.
type Origin struct {
	Operator         string   `json:"operator,omitempty"`           // what made the bug, "commit" and "model" included; "" = people
	Operators        []string `json:"operators,omitempty"`          // of a composed bug, in order
	Seed             int64    `json:"seed,omitempty"`               // of the choice that made it
	ParentTreeSHA256 string   `json:"parent_tree_sha256,omitempty"` // the repository before the bug patch
	Site             string   `json:"site,omitempty"`               // file:line of the bug
	Commit           string   `json:"commit,omitempty"`             // of the upstream, that the bug takes back
	Model            string   `json:"model,omitempty"`              // that wrote the bug
	PromptSHA256     string   `json:"prompt_sha256,omitempty"`      // of what it was asked, see llms.PromptSHA256
	UpstreamRepo     string   `json:"upstream_repo,omitempty"`      // canonical, such as github.com/owner/name
	License          string   `json:"license,omitempty"`            // SPDX id of the upstream
	BaseCommit       string   `json:"base_commit,omitempty"`
	Split            string   `json:"split,omitempty"` // train, validation, test
}

// Difficulty is measured, one number per question (no single score); a number
// nobody measured is nil. All of it is privileged: it is learnt from the gold.
type Difficulty struct {
	Visible           *int     `json:"visible,omitempty"`            // 0 root line in the traceback, 1 a frame of the program, 2 frames of tests only
	SymptomDistance   *int     `json:"symptom_distance,omitempty"`   // frames and events from the root to the failure
	ExecutedFunctions *int     `json:"executed_functions,omitempty"` // by the failing tests
	OchiaiRank        *int     `json:"ochiai_rank,omitempty"`        // of the root, from 1
	Cyclomatic        *int     `json:"cyclomatic,omitempty"`         // of the function that was changed
	Centrality        *int     `json:"centrality,omitempty"`         // callers of it
	Edits             *int     `json:"n_edits,omitempty"`
	Files             *int     `json:"files,omitempty"`
	TraceLen          *int     `json:"trace_len,omitempty"` // events of the failing run
	PPolicy           *float64 `json:"p_policy,omitempty"`  // pass rate of Policy over PolicyN attempts
	Policy            string   `json:"policy,omitempty"`
	PolicyN           int      `json:"policy_n,omitempty"`
	Bin               string   `json:"bin,omitempty"` // T0 to T4
}

// Public is the task without what would give its solution away: all that a
// policy, a prompt or the agent's sandbox may know. Of a task whose tests are
// hidden the lists go too: they name tests that the agent cannot have.
func (t Task) Public() Task {
	t.GoldPatch, t.BugPatch, t.Difficulty = "", "", nil
	t.Tests.Patch, t.Tests.Expected, t.Tests.Excluded = "", nil, nil
	if t.Visibility == TestsHidden {
		t.Tests.FailToPass, t.Tests.PassToPass, t.Tests.Command = nil, nil, ""
	}
	if t.Origin != nil {
		o := *t.Origin
		o.Operator, o.Operators, o.Seed, o.Site, o.Commit, o.PromptSHA256 = "", nil, 0, "", "", ""
		t.Origin = &o
	}
	return t
}
