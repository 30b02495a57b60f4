package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"syscall"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
)

// answer is one line on stdout. A field without omitempty is always present, even if the
// operation does not set it, so that readers in any language find its key.
type answer struct {
	OK           bool                  `json:"ok"`
	Error        string                `json:"error"`
	Observation  string                `json:"observation"`
	Observations []sourceText          `json:"observations"`
	Score        float64               `json:"score"`
	MaxScore     *float64              `json:"max_score"`
	EvalPassed   *bool                 `json:"eval_passed"`
	Terminated   bool                  `json:"terminated"`
	Breakpoints  []breakpoint          `json:"breakpoints"`
	Frame        *frame                `json:"frame"`
	ExitCode     *int                  `json:"exit_code"`
	IsError      bool                  `json:"is_error"`
	ErrorClass   string                `json:"error_class,omitempty"`
	TimedOut     bool                  `json:"timed_out"`
	Truncated    bool                  `json:"truncated"`
	DurationMS   float64               `json:"duration_ms"`
	Tools        []schemas.ToolSchema  `json:"tools,omitempty"`
	Patch        *string               `json:"patch,omitempty"`
	LeftOut      []schemas.OmittedFile `json:"left_out,omitempty"` // by the patch, because of their size
	TreeSHA256   string                `json:"tree_sha256,omitempty"`
	Resolved     *bool                 `json:"resolved,omitempty"`
	VerifyStatus string                `json:"verify_status,omitempty"`
	Verdict      *schemas.Verdict      `json:"verdict,omitempty"`
	ID           json.RawMessage       `json:"id,omitempty"` // of the operation, if it had one
}

type sourceText struct {
	Source string `json:"source"`
	Text   string `json:"text"`
}

type breakpoint struct {
	File      string  `json:"file"`
	Line      int     `json:"line"`
	Condition *string `json:"condition"`
	Enabled   bool    `json:"enabled"`
	Temporary bool    `json:"temporary"`
}

type frame struct {
	File     string `json:"file"`
	Line     int    `json:"line"`
	Function string `json:"function"`
}

// envLoop serves operations on one environment until close, end of input or a
// cancelled context.
type envLoop struct {
	env   env.Env
	grade func(ctx context.Context, patch []byte, treeSHA string) (schemas.Verdict, error)
	now   func() float64 // milliseconds, monotonic
	last  answer         // state after the last reset or step

	resetTried bool // a reset was requested
	resetDone  bool // a reset has succeeded
	ready      bool // the last reset has succeeded
	calls      int  // tool calls so far
}

// since returns the milliseconds since start, without what floats add after the microseconds.
func (l *envLoop) since(start float64) float64 { return math.Round((l.now()-start)*1000) / 1000 }

// serve answers the operations of in, one line each, until close, the end of in or the end
// of ctx. It returns nil, nil and the cause of ctx, respectively.
func (l *envLoop) serve(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	lines := make(chan line)
	// A read of standard input cannot be interrupted: after a signal this goroutine
	// blocks until the process ends.
	go readLines(ctx, in, lines)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for {
		var got line
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case got = <-lines:
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if errors.Is(got.err, io.EOF) {
			return nil
		}
		if got.err == nil && len(bytes.TrimSpace(got.text)) == 0 {
			continue
		}
		start := l.now()
		o, err := op{}, got.err
		if err == nil {
			o, err = parseOp(got.text)
		}
		a := errorAnswer(err)
		if err == nil {
			a = l.handle(ctx, o)
		}
		a.DurationMS, a.ID = l.since(start), o.ID
		if err := enc.Encode(a); err != nil {
			return answerError(err)
		}
		if err == nil && o.Op == "close" {
			return nil
		}
	}
}

// answerError returns the error for an answer that could not be written. It is silent if
// the reader closed the pipe. Otherwise it has the exit code ExitUsage, because the caller
// chose an output that cannot be written.
func answerError(err error) error {
	if errors.Is(err, syscall.EPIPE) {
		return silentExit{ExitPipe}
	}
	return Usage(fmt.Errorf("writing an answer: %w", err))
}

// handle answers one operation; it refuses those that need a reset first.
func (l *envLoop) handle(ctx context.Context, o op) answer {
	switch {
	case o.Op == "close":
		a := l.last
		a.OK, a.Error, a.Observation, a.Observations, a.Tools = true, "", "", []sourceText{}, nil
		if a.Breakpoints == nil { // no reset has succeeded
			a.Breakpoints = []breakpoint{}
		}
		return a
	case !l.ready && slices.Contains([]string{"step", "patch", "grade"}, o.Op):
		return errorAnswer(fmt.Errorf(`%s before reset: send {"op":"reset"} first`, o.Op))
	}
	return l.do(ctx, o)
}

// do executes one operation other than close.
func (l *envLoop) do(ctx context.Context, o op) answer {
	switch o.Op {
	case "reset":
		info, err := l.env.Reset(ctx, o.Soft && l.ready)
		l.ready = err == nil
		l.resetTried, l.resetDone = true, l.resetDone || l.ready
		return l.answer(ctx, info, err)
	case "step":
		return l.step(ctx, o)
	case "patch":
		return l.patch(ctx)
	case "grade":
		return l.verdict(ctx)
	}
	return errorAnswer(fmt.Errorf("unknown op %q: use reset, step, patch, grade or close", o.Op))
}

func (l *envLoop) step(ctx context.Context, o op) answer {
	if o.Tool == "" {
		info, err := l.env.NoCall(ctx)
		return l.answer(ctx, info, err)
	}
	l.calls++
	info, err := l.env.Step(ctx, o.call(l.calls))
	return l.answer(ctx, info, err)
}

func (l *envLoop) patch(ctx context.Context) answer {
	patch, sha, err := l.env.Patch(ctx)
	if err != nil {
		return errorAnswer(err)
	}
	a, text := l.last, string(patch)
	a.Observation, a.Observations, a.Tools = "", []sourceText{}, nil
	a.Patch, a.TreeSHA256 = &text, sha
	if t, ok := l.env.(env.PatchTrimmer); ok {
		a.LeftOut = t.LeftOut()
	}
	return a
}

// verdict answers grade.
func (l *envLoop) verdict(ctx context.Context) answer {
	a := l.patch(ctx)
	if !a.OK {
		return a
	}
	v, err := l.grade(ctx, []byte(*a.Patch), a.TreeSHA256)
	if err != nil {
		return errorAnswer(err)
	}
	v = v.WithOmitted(a.LeftOut) // a failure may be due to the files that the patch omits
	a.Resolved, a.VerifyStatus, a.Verdict = v.Resolved, v.Status, &v
	return a
}

// answer makes the answer to a reset or a step.
func (l *envLoop) answer(ctx context.Context, info env.Info, err error) answer {
	a := answer{OK: err == nil, Observations: []sourceText{}, Breakpoints: []breakpoint{}}
	switch {
	case err == nil:
	case ctx.Err() != nil:
		a.Error = "stopped by a signal"
	case errors.Is(err, env.ErrSandboxDied):
		a.Error = err.Error() + `: send {"op":"reset"} for a fresh one`
	default:
		a.Error = err.Error()
	}
	obs := info.Observation
	a.Observation, a.IsError, a.ErrorClass = obs.Text, obs.IsError, obs.ErrorClass
	a.ExitCode, a.TimedOut, a.Truncated = obs.ExitCode, obs.TimedOut, obs.Truncated
	for _, each := range info.Observations {
		if each.Source == "" && each.Text == "" {
			continue // the step was stopped by a signal or the death of the sandbox
		}
		a.Observations = append(a.Observations, sourceText{each.Source, each.Text})
	}
	s := info.State
	a.Score, a.MaxScore, a.EvalPassed, a.Terminated = s.Score, s.MaxScore, s.EvalPassed, s.Terminated
	for _, b := range s.Breakpoints {
		out := breakpoint{File: b.File, Line: b.Line, Enabled: b.Enabled, Temporary: b.Temporary}
		if b.Condition != "" {
			out.Condition = &b.Condition
		}
		a.Breakpoints = append(a.Breakpoints, out)
	}
	if s.Frame != nil {
		a.Frame = &frame{s.Frame.File, s.Frame.Line, s.Frame.Function}
	}
	a.Tools = info.Tools
	if err == nil {
		l.last = a
		l.last.IsError, l.last.ErrorClass, l.last.ExitCode, l.last.TimedOut, l.last.Truncated = false, "", nil, false, false
	}
	return a
}

// errorAnswer returns the answer for an operation that failed; the zero answer if err is nil.
func errorAnswer(err error) answer {
	if err == nil {
		return answer{}
	}
	return answer{Error: err.Error(), Observations: []sourceText{}, Breakpoints: []breakpoint{}}
}
