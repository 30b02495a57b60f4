package schemas

import "time"

// Task is one bug: a repository state, the instructions for the agent, the command
// that shows the bug, and how a fix is verified. The env.Source of the task
// provides the repository; TreeSHA256 identifies its content.
type Task struct {
	// ID is the result of ComputeID: same content, same id.
	ID         string `json:"id"`
	Source     string `json:"source"`             // task source name: builtin, path, dir, swebench, ...
	Revision   string `json:"revision,omitempty"` // revision of the source, if it has one
	InstanceID string `json:"instance_id"`        // unique within Source

	Repo       string `json:"repo"`                  // canonical upstream name, or source/instance
	RepoSource string `json:"repo_source,omitempty"` // the repository as the source names it
	BaseCommit string `json:"base_commit,omitempty"`
	License    string `json:"license,omitempty"` // SPDX id of the repository
	// LicenseFile is the file of the repository that License was read from; "" if the source states the license.
	LicenseFile string `json:"license_file,omitempty"`

	Language  string    `json:"language"` // "python"
	BugKind   string    `json:"bug_kind,omitempty"`
	CreatedAt time.Time `json:"created_at,omitzero"`

	Instructions    string   `json:"instructions"`
	Entrypoint      string   `json:"entrypoint"`                 // shell command line that runs the tests
	DebugEntrypoint string   `json:"debug_entrypoint,omitempty"` // what pdb runs; "" = Entrypoint
	Setup           []string `json:"setup,omitempty"`            // build commands, run once
	Hide            []string `json:"hide,omitempty"`             // directories below the interpreter's module path (pip/_vendor/NAME) that appear empty in sandboxes
	Python          string   `json:"python,omitempty"`           // interpreter path on the host (bubblewrap)
	Image           string   `json:"image,omitempty"`            // container image; empty = bubblewrap
	Workdir         string   `json:"workdir"`                    // absolute path of the repository in the sandbox
	TreeSHA256      string   `json:"tree_sha256"`                // Tree.SHA256 of the repository

	Tests      TestSpec `json:"tests"`
	GoldPatch  string   `json:"gold_patch,omitempty"` // privileged: unified diff base -> fixed
	BugPatch   string   `json:"bug_patch,omitempty"`  // privileged: unified diff healthy repository -> base
	Visibility string   `json:"test_visibility"`      // TestsHidden, TestsVisible or TestsRunnable

	Origin     *Origin     `json:"origin,omitempty"`
	Difficulty *Difficulty `json:"difficulty,omitempty"`
}

// Values of Task.Visibility: whether the agent can see the tests of the verifier.
const (
	TestsHidden   = "hidden"   // TestSpec.Patch adds some of them after the agent has finished
	TestsVisible  = "visible"  // the agent can read them, but the entrypoint does not run them
	TestsRunnable = "runnable" // the entrypoint runs them
)

// TestSpec describes how a patch is verified. Test ids are those that the runner
// reports (pytest node ids, unittest dotted names), relative to Workdir. Some
// benchmarks list only the last part of an id, or the first line of a docstring.
// Such an entry stands for every matching test, and all of them must pass.
type TestSpec struct {
	Method     string   `json:"method"`                 // VerifyPytest, VerifyUnittest, VerifyExitCode or VerifyNone
	FailToPass []string `json:"fail_to_pass,omitempty"` // fail on base, must pass with the patch
	PassToPass []string `json:"pass_to_pass,omitempty"` // pass on base, must still pass with the patch
	Files      []string `json:"files,omitempty"`        // paths restored from base before grading; globs allowed
	// Patch holds hidden tests: a unified diff against base. Only the verifier applies
	// it, after it has restored Files.
	Patch string `json:"patch,omitempty"`
	// Command is the command that the verifier runs; "" = Task.Entrypoint.
	Command string `json:"command,omitempty"`
	// Expected, if set, replaces the lists: the status of every test that ran and of
	// every test named here must agree with it (see StatusPassed). Skipped tests and
	// expected failures may be missing here.
	Expected map[string]string `json:"expected,omitempty"`
	// XFailPasses counts an expected failure in PassToPass as passed, as the harness
	// did that created the list.
	XFailPasses bool `json:"xfail_passes,omitempty"`
	// Excluded maps test ids that the benchmark lists and this task omits to the
	// reason.
	Excluded map[string]string `json:"excluded,omitempty"`
}

// Values of TestSpec.Expected.
const (
	StatusPassed  = "passed" // also a test marked as expected to fail, whether it failed or passed
	StatusFailed  = "failed"
	StatusError   = "error"
	StatusSkipped = "skipped"
)

// NeedsBaseline reports whether the tests must be run on base to find out which of them verify the task.
func (s TestSpec) NeedsBaseline() bool {
	return len(s.FailToPass)+len(s.Expected) == 0 && s.Method != VerifyExitCode && s.Method != VerifyNone
}

// Values of TestSpec.Method.
const (
	VerifyPytest   = "pytest"
	VerifyUnittest = "unittest"
	VerifyExitCode = "exit_code"
	VerifyNone     = "none" // no verifier: questions, free exploration
)

// DefaultWorkdir is the path of the repository inside a sandbox unless the task
// sets another; benchmark images use the same path.
const DefaultWorkdir = "/testbed"

// ComputeID returns the task's content id: the ShortHash of everything except ID
// and the fields that may be added later (Origin, Difficulty).
func (t Task) ComputeID() string {
	t.ID, t.Origin, t.Difficulty = "", nil, nil
	return ShortHash(t)
}

// Job is one unit of work: task x agent x model x attempt.
type Job struct {
	EpisodeID string `json:"episode_id"` // 32 hex, see NewJob
	RunID     string `json:"run_id"`
	TaskID    string `json:"task_id"`
	Instance  string `json:"instance_id"`
	AgentKey  string `json:"agent_key"` // hash of agent, prompts, tools, model, sampling
	GroupID   string `json:"group_id"`  // same task and agent: the k attempts
	Attempt   int    `json:"attempt"`   // 0 to k-1
	Seed      int64  `json:"seed"`      // derived, never negative
}

// NewJob derives a job's ids and seed from its task, agent, attempt and run, so that
// planning twice gives the same jobs.
func NewJob(runID string, t Task, agentKey string, attempt int) Job {
	id := ShortHash([]any{t.ID, agentKey, attempt, runID})
	var seed int64
	for _, c := range []byte(id[:15]) {
		seed = seed<<4 | int64(hexDigit(c))
	}
	return Job{
		EpisodeID: id, RunID: runID, TaskID: t.ID, Instance: t.InstanceID,
		AgentKey: agentKey, GroupID: ShortHash([]any{t.ID, agentKey}), Attempt: attempt, Seed: seed,
	}
}

func hexDigit(c byte) byte {
	if c >= 'a' {
		return c - 'a' + 10
	}
	return c - '0'
}
