package schemas

import (
	"encoding/json"
	"time"
)

// ToolSchema describes one tool to a model: an OpenAI function definition.
type ToolSchema struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"` // JSON Schema object
}

// ToolCall is one call as the model made it.
type ToolCall struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`           // canonical JSON object, {} when Raw does not parse
	Raw       string          `json:"raw,omitempty"`       // the model's own text, if it differs or does not parse
	Repaired  bool            `json:"repaired,omitempty"`  // Arguments were repaired: what Raw must mean, not what it says
	Invalid   string          `json:"invalid,omitempty"`   // why Raw does not parse; the call must not be executed
	Truncated bool            `json:"truncated,omitempty"` // Invalid because the reply hit its token limit
	GoldEdit  bool            `json:"gold_edit,omitempty"` // arguments come from the gold patch: never trained on
}

// NewToolCall returns a call that tracesmith itself makes, without an id. It panics if JSON cannot represent the arguments.
func NewToolCall(tool string, args map[string]any) ToolCall {
	raw := []byte("{}")
	if len(args) > 0 {
		var err error
		if raw, err = CanonicalJSON(args); err != nil {
			panic(err)
		}
	}
	return ToolCall{Name: tool, Arguments: raw}
}

// Usage is the token usage that the provider reported for one call.
type Usage struct {
	Prompt     int64 `json:"prompt"` // includes Cached and CacheWrite
	Completion int64 `json:"completion"`
	Cached     int64 `json:"cached"`                // part of Prompt that was read from the server's cache
	CacheWrite int64 `json:"cache_write,omitempty"` // part of Prompt that was written to the cache, if the server reports it
	// CacheWrite1h is the part of CacheWrite with a lifetime of one hour.
	CacheWrite1h int64 `json:"cache_write_1h,omitempty"`
	Reasoning    int64 `json:"reasoning"` // part of Completion
}

// Reply is one turn of a policy: text, and zero or more tool calls.
type Reply struct {
	Message         string          `json:"message"`
	Reasoning       string          `json:"reasoning,omitempty"`
	ReasoningBlocks json.RawMessage `json:"reasoning_blocks,omitempty"` // typed or signed blocks verbatim
	Calls           []ToolCall      `json:"calls,omitempty"`
	FinishReason    string          `json:"finish_reason,omitempty"` // as the server reported it
	Truncated       bool            `json:"truncated,omitempty"`     // the answer hit its token limit
	CallAsText      bool            `json:"call_as_text,omitempty"`  // there is no call, but Message contains one as text
	// Stop ends the episode after this turn with the given exit reason.
	Stop string `json:"stop,omitempty"`
	// Claims has what Message asserts. Nil means that the policy does not say, and an empty list that Message
	// asserts nothing.
	Claims []Claim `json:"claims,omitzero"`

	Model        string     `json:"model,omitempty"`           // as the provider named it
	Usage        *Usage     `json:"usage,omitempty"`           // nil: no model was called, or the server reported no usage
	Estimated    *Usage     `json:"estimated_usage,omitempty"` // tracesmith's count, if the server reported no usage
	CostUSD      *float64   `json:"cost_usd,omitempty"`
	LLMMillis    *int64     `json:"llm_ms,omitempty"`
	LLMCalls     int        `json:"llm_calls"` // HTTP calls made for this turn, 0 for policies without a model
	Retries      int        `json:"retries"`
	Copied       bool       `json:"copied,omitempty"`        // copied from another episode
	FromCache    bool       `json:"from_cache,omitempty"`    // answered in an earlier run and not paid for again
	PromptSHA256 string     `json:"prompt_sha256,omitempty"` // hash of the message list that was sent, see llms.PromptSHA256
	PromptCount  int        `json:"prompt_messages,omitempty"`
	Context      *ContextOp `json:"context,omitempty"` // how that list differs from the conversation; nil if it does not
	// RequestSHA256 and ResponseSHA256 are hashes of the HTTP bodies of the call that
	// succeeded. The bodies are private data of the run.
	RequestSHA256  string          `json:"request_sha256,omitempty"`
	ResponseSHA256 string          `json:"response_sha256,omitempty"`
	ToolSet        string          `json:"tool_set_sha256,omitempty"` // Hash of the tools that the model was shown
	Extra          json.RawMessage `json:"extra,omitempty"`           // the assistant message as received, for echoing back unknown fields
}

// Observation is the answer of one tool, or of the environment.
type Observation struct {
	Source     string `json:"source"` // tool name, or "env"
	Text       string `json:"text"`   // as the model sees it, capped
	IsError    bool   `json:"is_error,omitempty"`
	ErrorClass string `json:"error_class,omitempty"` // Err* constants
	ExitCode   *int   `json:"exit_code,omitempty"`   // nil unless a process ran and ended
	TimedOut   bool   `json:"timed_out,omitempty"`
	Truncated  bool   `json:"truncated,omitempty"`
	FullText   string `json:"full_text,omitempty"` // only when Truncated: the text up to a higher limit, tools.MaxFullText
	FullBytes  int64  `json:"full_bytes"`          // bytes produced before any cut
	// Targets lists what the call touched: path[:start-end] or path::symbol.
	Targets []string `json:"targets,omitempty"`
}

// Values of error_class: what went wrong in a step.
const (
	ErrBadArguments  = "bad_arguments"
	ErrUnknownTool   = "unknown_tool"
	ErrNoToolCall    = "no_tool_call"
	ErrCallAsText    = "call_as_text"   // a call written out as text: never executed
	ErrCutOff        = "cut_off"        // the reply hit its token limit before its call was complete
	ErrToolException = "tool_exception" // a bug of tracesmith, never the model's
	ErrTimeout       = "timeout"
	ErrNonzeroExit   = "nonzero_exit"
	ErrUserError     = "user_error" // valid arguments with a mistake, such as a file that does not exist
	ErrSandboxDied   = "sandbox_died"
	ErrNotExecuted   = "not_executed" // the episode had ended before the call
)

// CallRefused reports whether a call with this error class did not reach its tool.
func CallRefused(errorClass string) bool {
	switch errorClass {
	case ErrUnknownTool, ErrNotExecuted, ErrBadArguments, ErrCutOff:
		return true
	}
	return false
}

// Breakpoint is one entry of the debugger's registry of breakpoints.
type Breakpoint struct {
	File      string `json:"file"` // relative to the workspace, slash-separated
	Line      int    `json:"line"` // 1-based
	Condition string `json:"condition,omitempty"`
	Enabled   bool   `json:"enabled"`
	Temporary bool   `json:"temporary,omitempty"`
	Ignore    int    `json:"ignore,omitempty"`
	Hits      int    `json:"hits,omitempty"`
}

// Frame is the place at which the debugger has stopped the program.
type Frame struct {
	File     string `json:"file"` // relative to the workspace; absolute if outside it
	Line     int    `json:"line"`
	Function string `json:"function"`
	Event    string `json:"event,omitempty"` // why it stopped: call, line, return or exception
	Depth    int    `json:"depth,omitempty"`
}

// EnvState is the environment after a step.
type EnvState struct {
	Score       float64      `json:"score"`
	MaxScore    *float64     `json:"max_score"`
	EvalPassed  *bool        `json:"eval_passed"` // nil until an eval ran
	TestsPassed *int         `json:"tests_passed,omitempty"`
	TestsFailed *int         `json:"tests_failed,omitempty"`
	Terminated  bool         `json:"terminated"`
	Breakpoints []Breakpoint `json:"breakpoints"`
	Frame       *Frame       `json:"frame"`
	// DebuggerEvent is Frame.Event, or "finished" (without a Frame) after the
	// debugged program has ended.
	DebuggerEvent string   `json:"debugger_event,omitempty"`
	FilesChanged  []string `json:"files_changed,omitempty"` // by this step
	WorkspaceSHA  string   `json:"workspace_sha256,omitempty"`
}

// Step is one event of an episode: the system prompt, the problem, an initial
// observation, or one tool call with its observation. It becomes one row.
type Step struct {
	Index  int    `json:"index"`
	Turn   int    `json:"turn"`   // counts replies over all phases; -1 for the messages that open a conversation
	Call   int    `json:"call"`   // index within the turn's calls; -1 if there is no call
	Source string `json:"source"` // system, user, agent, env
	// Phase is the conversation that the step belongs to; "" if the episode has only one.
	Phase string    `json:"phase,omitempty"`
	At    time.Time `json:"at"` // start of the event, UTC
	// Text is the message of system, user and env steps.
	Text string `json:"text,omitempty"`
	// Reply is set only on the first step of each turn (call 0, or no call).
	Reply       *Reply        `json:"reply,omitempty"`
	ToolCall    *ToolCall     `json:"tool_call,omitempty"`
	Observation *Observation  `json:"observation,omitempty"`
	Triggered   []Observation `json:"triggered,omitempty"` // of other tools, after the step's own
	State       *EnvState     `json:"state,omitempty"`
	EnvMillis   int64         `json:"env_ms"`
	Replayed    bool          `json:"replayed,omitempty"` // re-executed after a crash; the content is that of the original
	Synthetic   bool          `json:"synthetic,omitempty"`
}
