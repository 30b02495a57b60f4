package env

import (
	"context"
	"time"

	"github.com/tracesmith/tracesmith/schemas"
)

// Toolbox is the set of tools an environment offers; package tools implements
// it. A call never fails: what goes wrong is an observation, except
// ErrSandboxDied and infrastructure errors.
type Toolbox interface {
	Schemas() []schemas.ToolSchema
	// Call runs one call to its end.
	Call(ctx context.Context, s *Session, call schemas.ToolCall) (schemas.Observation, error)
	// Notify tells every tool that asked for it about an event, in
	// registration order, and collects what they say.
	Notify(ctx context.Context, s *Session, e Event) ([]schemas.Observation, error)
}

// Event is something tools may react to.
type Event struct {
	Kind string // EventReset, EventFileChange
	Edit *Edit  // EventFileChange
}

// Kinds of Event.
const (
	EventReset      = "reset"
	EventFileChange = "file_change"
)

// Edit describes one change of a file so that breakpoints can move with it:
// lines First..First+Removed-1 of the old text were replaced by Added lines.
// Whole says the file was replaced without a line mapping.
type Edit struct {
	File                  string // relative to the workspace
	First, Removed, Added int
	Whole                 bool
}

// Debugger is the debugger as Env and the tools see it; env/pdb implements it.
type Debugger interface {
	// Command runs what one tool call asks for. A mistake of the model is a reply;
	// an error means that the sandbox failed.
	Command(ctx context.Context, c DebuggerCommand) (DebuggerReply, error)
	Breakpoints() []schemas.Breakpoint
	Frame() *schemas.Frame
	// Edited moves breakpoints with an edit and marks a running session stale.
	Edited(e Edit)
	// Reset ends the session; clear drops the breakpoints too.
	Reset(ctx context.Context, clear bool) error
	Close(ctx context.Context) error
}

// DebuggerCommand is one call of the debugger.
type DebuggerCommand struct {
	Text       string        // one or several commands of pdb
	Entrypoint string        // "" = the current one
	Timeout    time.Duration // of the whole call; 0 = the debugger's own
	NoListing  bool          // leave out the source around the position
	Forget     bool          // breakpoints end with the program they were set in
}

// DebuggerReply is the answer to one debugger command.
type DebuggerReply struct {
	Text     string         // the whole observation, as the model sees it
	Frame    *schemas.Frame // nil: no session, or program not started
	TimedOut bool
	IsError  bool // pdb refused the command, or the session could not start
	ExitCode *int // set when the program ended
	Targets  []string
}

// EvalReport is the result of running the task's tests in the agent's own
// sandbox: never a verdict.
type EvalReport struct {
	Passed      bool
	Score, Max  float64
	Tests       map[string]string // id -> passed, failed, error, skipped
	Output      string
	ExitCode    int
	TimedOut    bool
	Wall        time.Duration
	OutputBytes int64
	// Died: the process of the tests ended before its tests did, or without its exit
	// handlers. Running is the test that had begun and has no result, NotRun those
	// that had not begun.
	Died    bool
	Running string
	NotRun  []string
}

// Session is what a tool may use while it runs: one per episode, owned by Env,
// used by one tool at a time.
type Session struct {
	Task     schemas.Task
	Sandbox  Sandbox
	Debugger Debugger
	// Workdir is Task.Workdir; every path a tool takes is below it.
	Workdir string
	// CommandTimeout bounds one tool call unless the tool's own argument does.
	CommandTimeout time.Duration
	// Recorded is what the call was answered the first time if Env repeats it, else
	// nil. A tool whose effects lie outside the sandbox must not have them twice: it
	// answers with Recorded instead.
	Recorded *schemas.Observation
	// Eval runs the task's entrypoint, for limit at most (0 = as long as the
	// environment lets it), and records the report.
	Eval func(ctx context.Context, limit time.Duration) (EvalReport, error)
	// Submit ends the episode.
	Submit func()
	// FileChanged tells the other tools about an edit; their words come back in
	// the step's triggered observations.
	FileChanged func(ctx context.Context, e Edit)

	locals map[any]any // see Local
}

// Info is what reset and step return.
type Info struct {
	Observation  schemas.Observation   // the step's own; at reset: the instructions
	Observations []schemas.Observation // all, the step's own first
	State        schemas.EnvState
	Tools        []schemas.ToolSchema // at reset only
	Wall         time.Duration
}

// Env is one debugging environment. One goroutine uses it.
type Env interface {
	// Reset places the repository and returns the instructions first, then what
	// tools say. soft keeps the sandbox and its files.
	Reset(ctx context.Context, soft bool) (Info, error)
	// Step runs one call. A model's mistake is an observation; an error means
	// the environment cannot go on (ErrSandboxDied or infrastructure).
	Step(ctx context.Context, call schemas.ToolCall) (Info, error)
	// Repeat is Step for a call that was answered recorded the first time: an episode
	// is taken up again, and its calls bring a fresh sandbox to the same place.
	Repeat(ctx context.Context, call schemas.ToolCall, recorded schemas.Observation) (Info, error)
	// NoCall is the step of a reply without any tool call.
	NoCall(ctx context.Context) (Info, error)
	// Patch is the git binary patch from the base tree to the current one, with
	// new files, deletions, modes and symlinks, and the tree's hash. An error
	// that is ErrRefused says that the workspace was left in a state no patch
	// can lead to.
	Patch(ctx context.Context) (patch []byte, treeSHA string, err error)
	Key() schemas.EnvKey
	Close(ctx context.Context) error
}

// MaxFileBytes is the size of the largest file that a patch can hold. Larger new files
// are left out of it; a file of the base tree that has grown beyond makes Patch fail
// with ErrRefused.
const MaxFileBytes = 64 << 20

// Trimming is an Env whose patch may leave files out.
type Trimming interface {
	// LeftOut are the files that the last Patch left out, sorted by path.
	LeftOut() []schemas.LeftOut
}

// Based is an Env that knows the tree its workspace begins with.
type Based interface {
	// Base is that tree's hash, "" where its store cannot tell.
	Base(ctx context.Context) (treeSHA string, err error)
}

// Verifier judges a patch in a sandbox nobody has touched.
type Verifier interface {
	Verify(ctx context.Context, t schemas.Task, tree Tree, patch []byte, finalSHA string) (schemas.Verdict, error)
}
