package env

import (
	"context"
	"time"

	"github.com/tracesmith/tracesmith/schemas"
)

// Toolbox is the set of tools that an environment offers. Package tools implements it.
// A failed call is an observation, not an error. Call and Notify return an error only
// if the sandbox died (ErrSandboxDied) or the infrastructure failed.
type Toolbox interface {
	Schemas() []schemas.ToolSchema
	// Call runs one call and waits for it to finish.
	Call(ctx context.Context, s *Session, call schemas.ToolCall) (schemas.Observation, error)
	// Notify passes an event to each tool that handles events, in registration order,
	// and returns their observations.
	Notify(ctx context.Context, s *Session, e Event) ([]schemas.Observation, error)
}

// Event is a change that tools may react to.
type Event struct {
	Kind string // EventReset, EventFileChange
	Edit *Edit  // EventFileChange
}

// Kinds of Event.
const (
	EventReset      = "reset"
	EventFileChange = "file_change"
)

// Edit describes one change of a file, so that breakpoints can move with the lines:
// lines First to First+Removed-1 of the old text were replaced by Added lines. If
// Whole is set, the whole file was replaced and its lines cannot be mapped.
type Edit struct {
	File                  string // relative to the workspace
	First, Removed, Added int
	Whole                 bool
}

// Debugger is the debugger as Env and the tools see it. Package env/pdb implements it.
type Debugger interface {
	// Command runs the commands of one tool call. A mistake of the model is a reply
	// with IsError; an error means that the sandbox failed.
	Command(ctx context.Context, c DebuggerCommand) (DebuggerReply, error)
	Breakpoints() []schemas.Breakpoint
	// Frame is the current position, nil if no program is stopped.
	Frame() *schemas.Frame
	// Edited moves breakpoints with an edit and marks a running session as stale.
	Edited(e Edit)
	// Reset ends the session. If clear is set, it also deletes the breakpoints.
	Reset(ctx context.Context, clear bool) error
	Close(ctx context.Context) error
}

// DebuggerCommand is one call of the debugger.
type DebuggerCommand struct {
	Text       string        // one or several pdb commands
	Entrypoint string        // "" = the current entry point
	Timeout    time.Duration // of the whole call; 0 = the debugger's default
	NoListing  bool          // leave out the source around the position
	Forget     bool          // delete the breakpoints when their program ends
}

// DebuggerReply is the answer to one debugger command.
type DebuggerReply struct {
	Text     string         // the whole observation, as the model sees it
	Frame    *schemas.Frame // nil if there is no session or the program has not started
	TimedOut bool
	IsError  bool     // pdb rejected the command, or the session could not start
	ExitCode *int     // nil unless the program has ended
	Targets  []string // what Text shows, as in schemas.Observation
}

// EvalReport is the result of running the task's tests in the agent's own sandbox.
// The agent can influence it, so it is never used as a verdict.
type EvalReport struct {
	Passed      bool
	Score, Max  float64
	Tests       map[string]string // id -> passed, failed, error, skipped
	Output      string
	ExitCode    int
	TimedOut    bool
	Wall        time.Duration
	OutputBytes int64
	// Died is set if the test process ended before all tests had run, or without
	// running its exit handlers. Running is the test that had started and has no result;
	// NotRun are the tests that had not started.
	Died    bool
	Running string
	NotRun  []string
}

// Session holds what a tool may use while it runs. Env owns one Session per episode;
// one tool at a time uses it.
type Session struct {
	Task     schemas.Task
	Sandbox  Sandbox
	Debugger Debugger
	// Workdir is Task.Workdir. Every path that a tool accepts is below it.
	Workdir string
	// CommandTimeout limits one tool call, unless an argument of the call sets a limit.
	CommandTimeout time.Duration
	// Recorded is the first answer to the current call if Env.Repeat runs it again, and
	// nil otherwise. A tool with effects outside the sandbox must not cause them twice,
	// so it returns Recorded instead.
	Recorded *schemas.Observation
	// Eval runs the task's entrypoint for at most limit (0 = the environment's default)
	// and records the report.
	Eval func(ctx context.Context, limit time.Duration) (EvalReport, error)
	// Submit ends the episode.
	Submit func()
	// FileChanged records an edit. After the current call, Env notifies the other tools of it
	// and adds their observations to those of the step.
	FileChanged func(ctx context.Context, e Edit)

	locals map[any]any // see Local
}

// Info is the result of a reset or a step.
type Info struct {
	Observation  schemas.Observation   // the call's observation; after a reset, the instructions
	Observations []schemas.Observation // Observation, followed by those of notified tools
	State        schemas.EnvState
	Tools        []schemas.ToolSchema // after a reset only
	Wall         time.Duration
}

// Env is one debugging environment. It is not safe for concurrent use.
type Env interface {
	// Reset places the repository and returns the instructions. If soft is set, it
	// keeps the sandbox and its files.
	Reset(ctx context.Context, soft bool) (Info, error)
	// Step runs one call. A mistake of the model is an observation; an error means that
	// the environment cannot continue, because the sandbox died (ErrSandboxDied) or the
	// infrastructure failed.
	Step(ctx context.Context, call schemas.ToolCall) (Info, error)
	// Repeat runs a call of an interrupted episode again to bring a fresh sandbox into
	// the same state. recorded is the observation of the first time.
	Repeat(ctx context.Context, call schemas.ToolCall, recorded schemas.Observation) (Info, error)
	// NoCall is the step for a reply that calls no tool.
	NoCall(ctx context.Context) (Info, error)
	// Patch returns the git binary patch from the base tree to the current tree (new
	// files, deletions, modes and symlinks included) and the hash of the current tree.
	// The error is ErrRefused if no patch can produce the state of the workspace.
	Patch(ctx context.Context) (patch []byte, treeSHA string, err error)
	Key() schemas.EnvKey
	Close(ctx context.Context) error
}

// MaxFileBytes is the size of the largest file that a patch can hold. Patch leaves
// larger new files out, and fails with ErrRefused if a file of the base tree has grown
// beyond this size.
const MaxFileBytes = 64 << 20

// PatchTrimmer is an Env that may leave files out of its patch.
type PatchTrimmer interface {
	// LeftOut returns the files that the last Patch left out, sorted by path.
	LeftOut() []schemas.OmittedFile
}

// BaseHasher is an Env that knows the tree from which its workspace starts.
type BaseHasher interface {
	// Base returns the hash of that tree, or "" if the Workspace cannot compute it.
	Base(ctx context.Context) (treeSHA string, err error)
}

// Verifier judges a patch in a fresh sandbox.
type Verifier interface {
	Verify(ctx context.Context, t schemas.Task, tree Tree, patch []byte, finalSHA string) (schemas.Verdict, error)
}
