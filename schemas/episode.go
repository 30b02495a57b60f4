package schemas

import (
	"fmt"
	"time"
)

// Episode is one finished execution of a job, before normalisation.
type Episode struct {
	Job     Job       `json:"job"`
	Task    Task      `json:"task"`
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended"`

	Agent  AgentInfo    `json:"agent"`
	EnvKey EnvKey       `json:"env_key"`
	Tools  []ToolSchema `json:"tools"` // all that the agent was given
	Steps  []Step       `json:"steps"`
	// ToolSets are the lists that replies were shown where that was not always Tools.
	ToolSets [][]ToolSchema `json:"tool_sets,omitempty"`
	// Compared answers were given to calls that had been made before; those of the
	// Diverged steps are not what was recorded then.
	Compared int    `json:"compared,omitempty"`
	Diverged []int  `json:"diverged,omitempty"`
	Patch    []byte `json:"patch"`              // git binary patch base -> final tree; empty: nothing changed
	FinalSHA string `json:"final_sha"`          // tree hash of the final workspace
	BaseSHA  string `json:"base_sha,omitempty"` // of the one it began with
	// LeftOut are new files of the workspace that the patch leaves out.
	LeftOut []LeftOut `json:"left_out,omitempty"`

	ExitReason   string `json:"exit_reason"` // Exit* constants
	ErrorClass   string `json:"error_class,omitempty"`
	ErrorMessage string `json:"error_message,omitempty"`

	Verdict  Verdict `json:"verdict"`
	QueueMS  int64   `json:"queue_ms"`
	Delivery int     `json:"delivery"` // how often the queue handed the job out
}

// LeftOut is a file that is too large for a patch.
type LeftOut struct {
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
}

// AgentInfo says who acted.
type AgentInfo struct {
	Name          string `json:"name"`    // policy name
	Version       string `json:"version"` // of the policy and its prompts
	Policy        string `json:"policy"`  // model, demonstrator, solution, scripted, replay, null
	GoldUsed      bool   `json:"gold_used"`
	Model         string `json:"model,omitempty"`
	Provider      string `json:"provider,omitempty"`
	SamplingJSON  string `json:"sampling_json,omitempty"`
	ConfigJSON    string `json:"config_json"`
	ToolCallStyle string `json:"tool_call_style,omitempty"` // native, or text: calls stand in the replies' messages
	// Phases are the conversations of agents that have more than one, in order.
	Phases []PhaseInfo `json:"phases,omitempty"`
	// Parent is the episode whose turns are said again; those are Reply.Copied.
	Parent string `json:"parent_episode_id,omitempty"`
}

// PhaseInfo says who acts in one of an agent's conversations.
type PhaseInfo struct {
	Name     string `json:"name"` // Step.Phase
	Model    string `json:"model,omitempty"`
	Provider string `json:"provider,omitempty"`
}

// EnvKey records how an episode was isolated. Unenforced lists limits that were
// asked for and could not be enforced (design D3).
type EnvKey struct {
	Driver      string            `json:"driver"`
	Python      string            `json:"python,omitempty"` // version found in the sandbox
	Image       string            `json:"image,omitempty"`
	ImageDigest string            `json:"image_digest,omitempty"`
	Limits      map[string]string `json:"limits"` // limit -> mechanism
	Unenforced  []string          `json:"unenforced,omitempty"`
}

// Verdict is the verifier's word on a patch, from a fresh sandbox.
type Verdict struct {
	Resolved  *bool    `json:"resolved"` // nil: not verified
	Status    string   `json:"verify_status"`
	Method    string   `json:"verify_method"`
	Reason    string   `json:"reason,omitempty"` // why it is not a pass: one line
	F2PPassed int      `json:"f2p_passed"`
	F2PTotal  int      `json:"f2p_total"`
	P2PPassed int      `json:"p2p_passed"`
	P2PTotal  int      `json:"p2p_total"`
	Parsed    int      `json:"tests_parsed"`
	Refused   []string `json:"refused,omitempty"`  // import hooks and the like that the patch added
	Restored  []string `json:"restored,omitempty"` // test files the patch had changed
	Warnings  []string `json:"warnings,omitempty"` // why the verdict may rest on files that belong to the tests
	FinalSHA  string   `json:"final_sha,omitempty"`
	LogSHA256 string   `json:"log_sha256,omitempty"`
	Log       string   `json:"log,omitempty"` // runner output, capped
}

// Without is the verdict on a patch that leaves files out. A pass stands; a failure
// may be theirs, so nothing is decided then.
func (v Verdict) Without(left []LeftOut) Verdict {
	if len(left) == 0 || v.Status != VerifiedFail {
		return v
	}
	names := fmt.Sprintf("%s (%d bytes)", left[0].Path, left[0].Bytes)
	if n := len(left) - 1; n > 0 {
		names += fmt.Sprintf(" and %d more", n)
	}
	v.Reason = fmt.Sprintf("the patch leaves out %s because of the size, and does not pass without: %s", names, v.Reason)
	v.Status, v.Resolved = VerifyNotRun, nil
	return v
}

// Values of Verdict.Status.
const (
	VerifiedPass  = "verified_pass"
	VerifiedFail  = "verified_fail"
	VerifyNotRun  = "not_run"
	VerifyError   = "error"
	VerifyNotAppl = "not_applicable"
)
