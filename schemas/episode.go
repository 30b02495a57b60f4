package schemas

import (
	"fmt"
	"time"
)

// Episode is one finished execution of a job, before normalization.
type Episode struct {
	Job     Job       `json:"job"`
	Task    Task      `json:"task"`
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended"`

	Agent  AgentInfo    `json:"agent"`
	EnvKey EnvKey       `json:"env_key"`
	Tools  []ToolSchema `json:"tools"` // all tools of the agent
	Steps  []Step       `json:"steps"`
	// ToolSets are the lists of tools that the model was shown, if they differ from Tools.
	ToolSets [][]ToolSchema `json:"tool_sets,omitempty"`
	// Compared counts the calls that repeat a recorded call. Diverged lists the steps
	// whose answer differs from the recorded one.
	Compared int    `json:"compared,omitempty"`
	Diverged []int  `json:"diverged,omitempty"`
	Patch    []byte `json:"patch"`              // Git binary patch base -> final tree; empty if nothing changed
	FinalSHA string `json:"final_sha"`          // tree hash of the final workspace
	BaseSHA  string `json:"base_sha,omitempty"` // tree hash of the initial workspace
	// LeftOut lists new files of the workspace that the patch omits.
	LeftOut []OmittedFile `json:"left_out,omitempty"`

	ExitReason   string `json:"exit_reason"` // Exit* constants
	ErrorClass   string `json:"error_class,omitempty"`
	ErrorMessage string `json:"error_message,omitempty"`

	Verdict  Verdict `json:"verdict"`
	QueueMS  int64   `json:"queue_ms"`
	Delivery int     `json:"delivery"` // how often the queue delivered the job
}

// OmittedFile is a file that a patch omits because it is too large.
type OmittedFile struct {
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
}

// AgentInfo describes the agent of an episode.
type AgentInfo struct {
	Name          string `json:"name"`    // policy name
	Version       string `json:"version"` // of the policy and its prompts
	Policy        string `json:"policy"`  // model, oracle, baseline, solution, scripted, human, replay, noop
	GoldUsed      bool   `json:"gold_used"`
	Model         string `json:"model,omitempty"`
	Provider      string `json:"provider,omitempty"`
	SamplingJSON  string `json:"sampling_json,omitempty"`
	ConfigJSON    string `json:"config_json"`
	ToolCallStyle string `json:"tool_call_style,omitempty"` // native, or text: calls are written out in the replies' messages
	// Phases are the conversations of agents that have more than one, in order.
	Phases []PhaseInfo `json:"phases,omitempty"`
	// Parent is the episode whose turns are repeated; they have Reply.Copied.
	Parent string `json:"parent_episode_id,omitempty"`
}

// PhaseInfo names the model that acts in one of an agent's conversations.
type PhaseInfo struct {
	Name     string `json:"name"` // Step.Phase
	Model    string `json:"model,omitempty"`
	Provider string `json:"provider,omitempty"`
}

// EnvKey records how an episode was isolated. Unenforced lists limits that were
// requested but could not be enforced.
type EnvKey struct {
	Driver      string            `json:"driver"`
	Python      string            `json:"python,omitempty"` // version found in the sandbox
	Image       string            `json:"image,omitempty"`
	ImageDigest string            `json:"image_digest,omitempty"`
	Limits      map[string]string `json:"limits"` // limit -> mechanism
	Unenforced  []string          `json:"unenforced,omitempty"`
}

// Verdict is the verifier's judgment of a patch in a fresh sandbox.
type Verdict struct {
	Resolved  *bool    `json:"resolved"` // nil: not verified
	Status    string   `json:"verify_status"`
	Method    string   `json:"verify_method"`
	Reason    string   `json:"reason,omitempty"` // why the patch did not pass, in one line
	F2PPassed int      `json:"f2p_passed"`
	F2PTotal  int      `json:"f2p_total"`
	P2PPassed int      `json:"p2p_passed"`
	P2PTotal  int      `json:"p2p_total"`
	Parsed    int      `json:"tests_parsed"`
	Refused   []string `json:"refused,omitempty"`  // files such as import hooks that the patch added and the verifier does not allow
	Restored  []string `json:"restored,omitempty"` // test files that the patch changed
	Warnings  []string `json:"warnings,omitempty"` // reasons to doubt the verdict: the patch changed files that the tests may use
	FinalSHA  string   `json:"final_sha,omitempty"`
	LogSHA256 string   `json:"log_sha256,omitempty"`
	Log       string   `json:"log,omitempty"` // runner output, capped
}

// WithOmitted returns the verdict on a patch that omits files. A pass remains a pass. A
// failure becomes VerifyNotRun, because the missing files may have caused it.
func (v Verdict) WithOmitted(omitted []OmittedFile) Verdict {
	if len(omitted) == 0 || v.Status != VerifiedFail {
		return v
	}
	names := fmt.Sprintf("%s (%d bytes)", omitted[0].Path, omitted[0].Bytes)
	if n := len(omitted) - 1; n > 0 {
		names += fmt.Sprintf(" and %d more", n)
	}
	v.Reason = fmt.Sprintf("the patch omits %s because of the size, so a failure decides nothing: %s", names, v.Reason)
	v.Status, v.Resolved = VerifyNotRun, nil
	return v
}

// Values of Verdict.Status.
const (
	VerifiedPass        = "verified_pass"
	VerifiedFail        = "verified_fail"
	VerifyNotRun        = "not_run" // the verifier did not run, or its failure decides nothing (see WithOmitted)
	VerifyError         = "error"
	VerifyNotApplicable = "not_applicable"
)
