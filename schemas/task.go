package schemas

import "time"

// Task is one bug: a repository state, the words the agent is given, the
// command that shows the bug, and how a fix is judged. The repository itself is
// handed out by the env.Source the task came from; TreeSHA256 pins it.
type Task struct {
	// ID is ComputeID: same content, same id.
	ID         string `json:"id"`
	Source     string `json:"source"`             // task source name: builtin, path, dir, swebench, ...
	Revision   string `json:"revision,omitempty"` // of the source, if it has one
	InstanceID string `json:"instance_id"`        // unique within Source

	Repo       string `json:"repo"`                  // canonical upstream name, or source/instance
	RepoSource string `json:"repo_source,omitempty"` // as given
	BaseCommit string `json:"base_commit,omitempty"`
	License    string `json:"license,omitempty"` // SPDX id of the repository
	// LicenseFile is the file of the repository that License was read from; "" where the source states it.
	LicenseFile string `json:"license_file,omitempty"`

	Language  string    `json:"language"` // "python"
	BugKind   string    `json:"bug_kind,omitempty"`
	CreatedAt time.Time `json:"created_at,omitzero"`

	Instructions    string   `json:"instructions"`
	Entrypoint      string   `json:"entrypoint"`                 // shell command line that runs the tests
	DebugEntrypoint string   `json:"debug_entrypoint,omitempty"` // what pdb runs; "" = Entrypoint
	Setup           []string `json:"setup,omitempty"`            // build commands, run once (design D2)
	Hide            []string `json:"hide,omitempty"`             // what the interpreter brings and sandboxes show empty: directories below its module path (pip/_vendor/NAME)
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

// Values of Task.Visibility: what the agent has of the tests that judge it.
const (
	TestsHidden   = "hidden"   // some of them come with TestSpec.Patch, after the agent is done
	TestsVisible  = "visible"  // it can read them, and the entrypoint runs something else
	TestsRunnable = "runnable" // the entrypoint runs them
)

// TestSpec says how a patch is judged. Test ids are what the runner reports
// (pytest node ids, unittest dotted names), relative to Workdir. An id that is
// only the last part of one, or the first line of its docstring, as some
// benchmarks list them, stands for every test of that name, all of which must do.
type TestSpec struct {
	Method     string   `json:"method"`                 // VerifyPytest, VerifyUnittest, VerifyExitCode or VerifyNone
	FailToPass []string `json:"fail_to_pass,omitempty"` // fail on base, must pass after
	PassToPass []string `json:"pass_to_pass,omitempty"` // pass on base, must still pass
	Files      []string `json:"files,omitempty"`        // paths restored from base before grading; globs allowed
	// Patch holds hidden tests: a unified diff against base. It is applied where a
	// patch is judged, after Files were restored, and nowhere else.
	Patch string `json:"patch,omitempty"`
	// Command is what the judge runs; "" = Task.Entrypoint.
	Command string `json:"command,omitempty"`
	// Expected, where it is set, decides instead of the lists: every test that ran
	// and every test named here must agree (see StatusPassed). A skipped test, or
	// one that was expected to fail, may be absent here.
	Expected map[string]string `json:"expected,omitempty"`
	// XFailPasses: a test of pass_to_pass that is expected to fail counts as passed,
	// as the harness had it that made the list.
	XFailPasses bool `json:"xfail_passes,omitempty"`
	// Excluded are ids that the benchmark lists and this task does not, with the
	// reason of each.
	Excluded map[string]string `json:"excluded,omitempty"`
}

// Values of TestSpec.Expected.
const (
	StatusPassed  = "passed" // also an expected failure, whatever became of it
	StatusFailed  = "failed"
	StatusError   = "error"
	StatusSkipped = "skipped"
)

// NeedsBaseline says that which tests judge the task must be found by running them.
func (s TestSpec) NeedsBaseline() bool {
	return len(s.FailToPass)+len(s.Expected) == 0 && s.Method != VerifyExitCode && s.Method != VerifyNone
}

// Values of TestSpec.Method.
const (
	VerifyPytest   = "pytest"
	VerifyUnittest = "unittest"
	VerifyExitCode = "exit_code"
	VerifyNone     = "none" // nothing here can judge it: questions, free exploration
)

// DefaultWorkdir is where a repository lies inside a sandbox unless its task
// says otherwise; benchmark images use the same path.
const DefaultWorkdir = "/testbed"

// ComputeID returns the task's content id: ShortHash of all but the id itself and
// what is said about the task (Origin, Difficulty), which may be said later.
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
	Attempt   int    `json:"attempt"`   // 0..k-1
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
