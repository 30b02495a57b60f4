package agents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/schemas"
)

// Config describes an episode to run.
type Config struct {
	Env      env.Env
	Policy   Policy
	Recorder Recorder // nil: nothing is recorded
	Limits   Limits
	Job      schemas.Job
	Task     schemas.Task
	Clock    func() time.Time // for timestamps; nil: time.Now
}

// Limits bounds an episode. Zero means no limit.
type Limits struct {
	MaxSteps        int           // turns
	MaxFormatErrors int           // turns in a row without one well-formed call
	MaxRepeats      int           // repetitions of a call, or of a cycle of up to three calls, that get the same answers
	Wall            time.Duration // time since the call of Run; a resumed episode gets the full time again
	MaxPromptTokens int64         // tokens of the conversation, as the provider counts them
}

// Result is the record of an episode, without its patch and verdict.
type Result struct {
	Agent          schemas.AgentInfo
	Tools          []schemas.ToolSchema   // all tools that the model saw
	ToolSets       [][]schemas.ToolSchema // each distinct list of tools that the model saw; nil if it always saw all tools of the environment
	Steps          []schemas.Step
	ExitReason     string // schemas.Exit*
	ErrorClass     string
	ErrorMessage   string
	Started, Ended time.Time // Started by the first execution of the job
	Replayed       int       // number of steps that an earlier execution of the job recorded
	Compared       int       // number of answers that were compared with recorded ones
	Diverged       []int     // sorted indexes of the steps whose answers differ from the recorded ones
}

// recordTimeout bounds one write of the recorder. A write continues after the episode's context
// ends, so that a cancellation does not lose a paid reply.
const recordTimeout = time.Minute

var errWall = errors.New("wall-clock limit of the episode")

// Run runs an episode to its end. If it returns an error, which is an *InfraError or a
// *FatalError, the result holds the steps so far. Anything else that ends an episode, such as a
// canceled ctx, is an exit reason and not an error. Run does not close the environment, so that
// the caller can call Env.Patch.
func Run(ctx context.Context, cfg Config) (Result, error) {
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	if cfg.Recorder == nil {
		cfg.Recorder = nopRecorder{}
	}
	cfg.Task = cfg.Task.Public()
	r := &run{
		Config:     cfg,
		policy:     PhasedOf(cfg.Policy),
		parent:     ctx,
		transcript: Transcript{Task: cfg.Task},
		result:     Result{Agent: cfg.Policy.Info(), Started: cfg.Clock().UTC()},
	}
	if cfg.Limits.Wall > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, cfg.Limits.Wall, errWall)
		defer cancel()
	}
	exit, err := r.begin(ctx)
	for exit == "" && err == nil {
		exit, err = r.turn(ctx)
	}
	return r.finish(ctx, exit, err)
}

// run is the state of one episode.
type run struct {
	Config
	policy     Phased          // Config.Policy
	parent     context.Context // the caller's, without the wall-clock limit
	transcript Transcript
	result     Result

	envTools []schemas.ToolSchema // all tools of the environment
	current  Phase
	toolHash string         // of the tools that the model sees
	recorded []schemas.Step // steps of an earlier execution of the job that are not replayed yet

	turnNo             int // number of the next turn
	terminated         bool
	sandboxDeaths      int // sandboxes the agent has killed
	formatErrors       int // turns in a row without a well-formed call
	wellFormed         bool
	recentCalls        []string // hashes of the last calls with their answers
	conversationTokens int64    // tokens of the conversation after the last reply; 0 if unknown
}

// finish returns the result of the episode. If a context has ended, finish assumes that this
// caused err.
func (r *run) finish(ctx context.Context, exit string, err error) (Result, error) {
	if err != nil {
		switch {
		case r.parent.Err() != nil:
			exit, err = schemas.ExitCancelled, nil
		case context.Cause(ctx) == errWall, r.Limits.Wall > 0 && llms.ClassOf(err) == "" && errors.Is(err, context.DeadlineExceeded):
			exit, err = schemas.ExitWallTimeout, nil
		default:
			exit, err = r.classify(err)
		}
	}
	r.result.ExitReason, r.result.Ended = exit, r.Clock().UTC()
	return r.result, err
}

// classify maps an error to an exit reason. It also returns an error if the agent did not cause
// the failure.
func (r *run) classify(err error) (string, error) {
	r.result.ErrorMessage = err.Error()
	class := llms.ClassOf(err)
	r.result.ErrorClass = string(class)
	switch class {
	case llms.ClassContext:
		return schemas.ExitMaxContext, nil
	case llms.ClassRefusal:
		return schemas.ExitRefused, nil
	case llms.ClassAuth, llms.ClassNotFound, llms.ClassBadRequest, llms.ClassQuota:
		return schemas.ExitLLMError, &FatalError{Class: class, Err: err}
	case llms.ClassTimeout:
		return schemas.ExitLLMTimeout, &InfraError{Exit: schemas.ExitLLMTimeout, Err: err}
	case llms.ClassUnreachable, llms.ClassRateLimit, llms.ClassConcurrency, llms.ClassOverload, llms.ClassServer:
		return schemas.ExitLLMError, &InfraError{Exit: schemas.ExitLLMError, Err: err}
	}
	if errors.Is(err, llms.ErrBudget) {
		r.result.ErrorClass = "budget"
		return schemas.ExitMaxCost, nil
	}
	exit := schemas.ExitEnvError
	if errors.Is(err, env.ErrSandboxDied) {
		exit = schemas.ExitSandboxError
	}
	r.result.ErrorClass = exit
	return exit, &InfraError{Exit: exit, Err: err}
}

// turn asks the policy for a reply and executes its calls.
func (r *run) turn(ctx context.Context) (string, error) {
	if r.Limits.MaxSteps > 0 && r.turnNo >= r.Limits.MaxSteps {
		return schemas.ExitMaxSteps, nil
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if exit, err := r.enterPhase(nil, r.Clock().UTC()); exit != "" || err != nil {
		return exit, err
	}
	if r.Limits.MaxPromptTokens > 0 && r.conversationTokens >= r.Limits.MaxPromptTokens {
		return schemas.ExitMaxContext, nil
	}
	asked := r.Clock().UTC()
	asking, done := r.Recorder.TurnContext(ctx)
	reply, err := r.policy.Next(asking, &r.transcript)
	if err != nil && ctx.Err() == nil && asking.Err() != nil {
		err = context.Cause(asking)
	}
	done()
	if err != nil {
		return "", fmt.Errorf("turn %d: %w", r.turnNo, err)
	}
	fillDefaults(&reply, r.turnNo)
	reply.ToolSet = r.toolHash
	if err := r.withRecorder(func(ctx context.Context) error { return r.Recorder.Reply(ctx, r.turnNo, reply) }); err != nil {
		return "", fmt.Errorf("recording the reply: %w", err)
	}
	return r.execute(ctx, reply, 0, asked)
}

// fillDefaults sets the call ids and arguments that a policy left empty.
func fillDefaults(reply *schemas.Reply, turn int) {
	for i := range reply.Calls {
		c := &reply.Calls[i]
		c.ID = cmp.Or(c.ID, fmt.Sprintf("call_%d_%d", turn, i))
		if len(c.Arguments) == 0 {
			c.Arguments = []byte("{}")
		}
	}
}

// execute executes the calls of a reply, beginning with call number from, and ends the turn. Each
// call gets one observation.
func (r *run) execute(ctx context.Context, reply schemas.Reply, from int, at time.Time) (string, error) {
	r.transcript.Reply = &reply
	defer func() { r.transcript.Reply = nil }()
	if len(reply.Calls) == 0 {
		if err := r.withoutCall(ctx, reply, at); err != nil {
			return "", err
		}
	}
	var stopErr error // why the remaining calls are not executed
	for i := from; i < len(reply.Calls); i++ {
		step := schemas.Step{Turn: r.turnNo, Call: i, Source: "agent", Phase: r.current.Name, At: at, ToolCall: &reply.Calls[i]}
		if i == 0 {
			step.Reply = &reply
		}
		if stopErr == nil {
			stopErr = ctx.Err()
		}
		if r.parent.Err() != nil {
			return "", stopErr
		}
		now, err := r.phase()
		switch {
		case err != nil:
		case r.terminated || stopErr != nil || r.sandboxDeaths > 1:
			err = r.skip(step, "the episode had already ended")
		case now.Name != r.current.Name:
			err = r.skip(step, "your part of the work had already ended")
		default:
			if err = r.call(ctx, step); err != nil && context.Cause(ctx) == errWall && r.parent.Err() == nil {
				stopErr, err = err, r.skip(step, "the episode had already ended")
			}
		}
		if err != nil {
			return "", err
		}
		at = r.Clock().UTC()
	}
	if stopErr != nil {
		return "", stopErr
	}
	return r.endTurn(reply), nil
}

// withoutCall adds the step of a reply without a call.
func (r *run) withoutCall(ctx context.Context, reply schemas.Reply, at time.Time) error {
	step := schemas.Step{Turn: r.turnNo, Call: -1, Source: "agent", Phase: r.current.Name, At: at, Reply: &reply}
	if reply.Stop == "" {
		info, err := r.Env.NoCall(ctx)
		if err != nil {
			return fmt.Errorf("answering a reply without a call: %w", err)
		}
		setObservation(&step, info)
		if class, text := r.explainNoCall(reply); class != "" && step.Observation.ErrorClass == schemas.ErrNoToolCall {
			step.Observation.ErrorClass, step.Observation.Text, step.Observation.FullBytes = class, text, int64(len(text))
		}
	}
	return r.add(step)
}

// explainNoCall returns the answer to a reply without a call if the reason for the missing call
// is known, and "" otherwise.
func (r *run) explainNoCall(reply schemas.Reply) (class, text string) {
	switch {
	case reply.CallAsText:
		return schemas.ErrCallAsText, "Your reply contains a tool call written out as text, so nothing happened. " +
			"Make the call through the tool-calling interface instead."
	case reply.Truncated:
		return schemas.ErrCutOff, "Your reply reached the token limit before it called a tool, so nothing happened. " +
			"Say less, and call one tool."
	}
	if !r.current.IsDefault() {
		if o, ok := r.policy.Answer(&r.transcript, schemas.ToolCall{}); ok {
			return o.ErrorClass, o.Text
		}
	}
	return "", ""
}

// call executes one call. When the agent kills its sandbox, call starts a new one and repeats the
// earlier calls in it. When the agent kills that one as well, the episode ends.
func (r *run) call(ctx context.Context, step schemas.Step) error {
	if o, ok := r.answerLocally(*step.ToolCall); ok {
		step.Observation, step.State = &o, r.stateBefore()
		return r.add(step)
	}
	info, err := r.Env.Step(ctx, *step.ToolCall)
	died := errors.Is(err, env.ErrSandboxDied)
	if diedErr, ok := errors.AsType[*env.DiedError](err); ok && !diedErr.CausedByCommand {
		died = false // the agent did not cause this, so the error makes the job run again, and the model does not see it
	}
	if ctx.Err() != nil && (err != nil || r.parent.Err() != nil) {
		return ctx.Err() // the observation only shows the cancellation
	}
	if err != nil && !died {
		return fmt.Errorf("running %s: %w", step.ToolCall.Name, err)
	}
	if !died {
		setObservation(&step, info)
		return r.add(step)
	}
	text := "The sandbox died while this call was running."
	if r.sandboxDeaths == 0 {
		text += " A new sandbox was started, and your earlier calls were repeated in it, without this one. Do not make this call again: if the sandbox dies once more, the episode ends."
	}
	info.Observation = schemas.Observation{Source: "env", Text: text, FullBytes: int64(len(text)), IsError: true, ErrorClass: schemas.ErrSandboxDied}
	info.Observations, info.State.Terminated = nil, false
	setObservation(&step, info)
	before := r.result.Steps
	if err := r.add(step); err != nil {
		return err
	}
	if r.sandboxDeaths > 1 {
		return nil
	}
	if _, err := r.Env.Reset(ctx, false); err != nil {
		return fmt.Errorf("replacing the sandbox: %w", err)
	}
	return r.repeat(ctx, before)
}

// skip adds a step for a call that is not executed.
func (r *run) skip(step schemas.Step, why string) error {
	text := "Not executed: " + why + "."
	step.Observation = &schemas.Observation{Source: "env", Text: text, FullBytes: int64(len(text)), IsError: true, ErrorClass: schemas.ErrNotExecuted}
	return r.add(step)
}

func setObservation(step *schemas.Step, info env.Info) {
	observation, state := info.Observation, info.State
	step.Observation, step.State = &observation, &state
	if len(info.Observations) > 1 {
		step.Triggered = info.Observations[1:]
	}
	step.EnvMillis = info.Wall.Milliseconds()
}

// add records a step and appends it.
func (r *run) add(step schemas.Step) error {
	step.Index = len(r.result.Steps)
	if o := step.Observation; r.current.NumberSteps && step.ToolCall != nil && o.ErrorClass != schemas.ErrNotExecuted {
		step.Triggered = append(slices.Clip(step.Triggered), schemas.Observation{Source: "env", Text: stepNumber(step.Index)})
	}
	if err := r.announceTools(&step); err != nil {
		return err
	}
	if err := r.withRecorder(func(ctx context.Context) error { return r.Recorder.Step(ctx, step) }); err != nil {
		return fmt.Errorf("recording a step: %w", err)
	}
	r.appendStep(step)
	return nil
}

func (r *run) withRecorder(write func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.parent), recordTimeout)
	defer cancel()
	return write(ctx)
}
