package schemas

// Splits lists the values of the column split.
var Splits = []string{"train", "validation", "test", "holdout"}

// Origin describes where a task's bug comes from. The fields that reveal the bug
// (Operator, Operators, Seed, Site, Commit, PromptSHA256) are privileged: Task.Public
// removes them.
type Origin struct {
	Operator         string   `json:"operator,omitempty"`           // mutation operator that made the bug, or "commit" or "model"; "" = people made it
	Operators        []string `json:"operators,omitempty"`          // operators of a composed bug, in order
	Seed             int64    `json:"seed,omitempty"`               // seed of the random choices
	ParentTreeSHA256 string   `json:"parent_tree_sha256,omitempty"` // tree of the repository before the bug patch
	Site             string   `json:"site,omitempty"`               // file:line of the bug
	Commit           string   `json:"commit,omitempty"`             // upstream commit that the bug reverts
	Text             string   `json:"text,omitempty"`               // kind of the instructions that the bug factory wrote, such as symptom
	TextVersion      int      `json:"text_version,omitempty"`       // version of the wording of Text
	Model            string   `json:"model,omitempty"`              // model that wrote the bug
	PromptSHA256     string   `json:"prompt_sha256,omitempty"`      // hash of the model's prompt, see llms.PromptSHA256
	UpstreamRepo     string   `json:"upstream_repo,omitempty"`      // canonical, such as github.com/owner/name
	License          string   `json:"license,omitempty"`            // SPDX id of the upstream
	BaseCommit       string   `json:"base_commit,omitempty"`
	Split            string   `json:"split,omitempty"` // train, validation, test
}

// Public returns the task without anything that reveals its solution. A policy, a
// prompt or the agent's sandbox may see the result. If the tests are hidden, it also
// removes the lists of tests, because they name tests that the agent must not know.
func (t Task) Public() Task {
	t.GoldPatch, t.BugPatch = "", ""
	if t.Difficulty != nil {
		d := t.Difficulty.Public()
		t.Difficulty = &d
	}
	t.Tests.Patch, t.Tests.Expected, t.Tests.Excluded = "", nil, nil
	if t.Visibility == TestsHidden {
		t.Difficulty = nil // measured with these tests
		t.Tests.FailToPass, t.Tests.PassToPass, t.Tests.Command = nil, nil, ""
	}
	if t.Origin != nil {
		o := *t.Origin
		o.Operator, o.Operators, o.Seed, o.Site, o.Commit, o.PromptSHA256 = "", nil, 0, "", "", ""
		t.Origin = &o
	}
	return t
}
