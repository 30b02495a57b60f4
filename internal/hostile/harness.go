package hostile

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
)

// Harness runs cases in an environment of the Repository's task. It is not safe for
// concurrent use.
type Harness struct {
	Env env.Env
	// Sandbox returns the current sandbox of the environment.
	Sandbox func() env.Sandbox
	// Isolated means that the sandbox shows exactly the processes of this environment.
	Isolated bool

	answers int    // number of calls so far
	suffix  string // end of the debugger's answers while the program is stopped; "" if unknown
}

// Grace is the time by which an answer may exceed its limit.
const Grace = time.Second

// hungAfter is the time after the limit at which a call counts as hung.
const hungAfter = 30 * time.Second

// Answer is the result of one call.
type Answer struct {
	Text       string
	Exit       *int
	TimedOut   bool
	IsError    bool
	Limit      time.Duration // time that the call may take
	Took       time.Duration
	LateBefore time.Duration // by how much an earlier answer of the same case was late
	Err        error         // error of the environment, including the death of the sandbox
}

// Late returns by how much the answer, or an earlier answer of the same case, exceeded the
// limit and Grace; 0 if none did.
func (a Answer) Late() time.Duration { return max(a.LateBefore, a.Took-a.Limit-Grace) }

// Hung reports whether there was no answer.
func (a Answer) Hung() bool { return errors.Is(a.Err, context.DeadlineExceeded) }

// Died reports whether the sandbox died.
func (a Answer) Died() bool { return errors.Is(a.Err, env.ErrSandboxDied) }

// earlyDeadline is a context that ends after the deadline that it states.
type earlyDeadline struct {
	context.Context
	deadline time.Time
}

func (c earlyDeadline) Deadline() (time.Time, bool) { return c.deadline, true }

// Call makes one tool call. It passes the limit to tools that have a timeout argument.
func (p *Harness) Call(ctx context.Context, tool string, args map[string]any, limit time.Duration) Answer {
	if tool == string(Bash) || tool == string(Pdb) {
		args["timeout"] = int(limit / time.Second)
	}
	raw, err := json.Marshal(args)
	if err != nil {
		return Answer{Err: fmt.Errorf("encoding a call: %w", err)}
	}
	bounded, cancel := context.WithTimeout(ctx, limit+hungAfter)
	defer cancel()
	p.answers++
	began := time.Now()
	if tool == string(Eval) { // its limit is the context's deadline minus one second
		bounded = earlyDeadline{bounded, began.Add(limit + time.Second)}
	}
	info, err := p.Env.Step(bounded, schemas.ToolCall{ID: fmt.Sprint(p.answers), Name: tool, Arguments: raw})
	o := info.Observation
	return Answer{
		Text: o.Text, Exit: o.ExitCode, TimedOut: o.TimedOut, IsError: o.IsError,
		Limit: limit, Took: time.Since(began), Err: cmp.Or(ctx.Err(), err),
	}
}

// Reset resets the environment.
func (p *Harness) Reset(ctx context.Context) error {
	p.suffix = ""
	_, err := p.Env.Reset(ctx, false)
	return err
}

// Verdict is the result of one case.
type Verdict struct {
	Case   Case
	Answer Answer   // answer to the case itself
	Wrong  []string // differences between the answer and Case.Want
	// Misframed lists wrong answers to the probes after the case, for example because output of the
	// case was taken for an answer.
	Misframed []string
	Leftover  []string // processes that should be gone
	Died      bool
	Err       error // an error other than Died, after which the harness is unusable
}

// Failed reports whether anything other than lateness is wrong.
func (v Verdict) Failed() bool {
	return len(v.Wrong)+len(v.Misframed)+len(v.Leftover) > 0 || v.Err != nil || v.Answer.Hung() || v.Died
}

func (v Verdict) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s): took %v of %v", v.Case.Name, v.Case.Surface, v.Answer.Took.Round(time.Millisecond), v.Answer.Limit)
	for kind, list := range map[string][]string{"wrong": v.Wrong, "misframed": v.Misframed, "left": v.Leftover} {
		for _, text := range list {
			fmt.Fprintf(&b, "\n  %s: %s", kind, text)
		}
	}
	if v.Answer.Err != nil {
		fmt.Fprintf(&b, "\n  the call: %v", v.Answer.Err)
	}
	if v.Err != nil {
		fmt.Fprintf(&b, "\n  the environment: %v", v.Err)
	}
	if len(v.Wrong) > 0 {
		fmt.Fprintf(&b, "\n  the answer was %s", shorten(v.Answer.Text))
	}
	return b.String()
}

// RunCase runs a case and then the probes. If the sandbox died or there was an error, the
// caller must create a new harness. If the case damages the environment, RunCase resets it.
func (p *Harness) RunCase(ctx context.Context, c Case) Verdict {
	v := Verdict{Case: c}
	v.Answer, v.Err = p.makeCalls(ctx, c)
	if v.Err != nil {
		return v
	}
	if v.Died = v.Answer.Died(); v.Died {
		if died, ok := errors.AsType[*env.DiedError](v.Answer.Err); ok && !died.CausedByCommand {
			v.Wrong = append(v.Wrong, "the sandbox died, but the error does not say that a command was running")
		}
		return v
	}
	if v.Answer.Err != nil {
		if !v.Answer.Hung() {
			v.Err = v.Answer.Err
		}
		return v
	}
	v.Wrong = mismatches(c.Want, v.Answer)
	if v.Misframed, v.Err = p.probe(ctx, c); v.Err != nil {
		v.Died = errors.Is(v.Err, env.ErrSandboxDied)
		return v
	}
	if p.Isolated && !c.Leaves {
		v.Leftover, v.Err = p.leftovers(ctx)
	}
	if v.Err == nil && c.Leaves {
		v.Err = p.sweep(ctx)
	}
	if v.Err == nil && c.Damages {
		v.Err = p.Reset(ctx)
	}
	return v
}

// makeCalls makes the calls of a case and returns the last answer.
func (p *Harness) makeCalls(ctx context.Context, c Case) (Answer, error) {
	switch c.Surface {
	case Bash:
		return p.Call(ctx, "bash", map[string]any{"command": c.text()}, c.limit()), nil
	case Pdb:
		file := "hostile_program.py"
		if err := p.Sandbox().WriteFile(ctx, p.path(file), []byte(c.text()), 0o644); err != nil {
			return Answer{}, fmt.Errorf("writing the case's program: %w", err)
		}
		p.suffix = ""
		args := map[string]any{"command": "p 'ready'", "entrypoint": "python3 " + file}
		// An entrypoint other than the last one starts a new session.
		a := p.Call(ctx, "pdb", args, DefaultLimit)
		commands := c.Commands
		if commands == nil {
			commands = []string{"c"}
		}
		for _, command := range commands {
			if a.Err != nil {
				break
			}
			late := a.Late()
			a = p.Call(ctx, "pdb", map[string]any{"command": command}, c.limit())
			a.LateBefore = late
		}
		return a, nil
	case Eval:
		if err := p.Sandbox().WriteFile(ctx, p.path("hostile.sh"), []byte(c.text()), 0o644); err != nil {
			return Answer{}, fmt.Errorf("writing the case's tests: %w", err)
		}
		a := p.Call(ctx, "eval", map[string]any{}, c.limit())
		if a.Err == nil {
			_, err := p.run(ctx, "rm -rf "+p.path("hostile.sh"))
			return a, err
		}
		return a, nil
	case Run:
		return p.runScript(ctx, c)
	}
	return Answer{}, fmt.Errorf("case %s: unknown surface %q", c.Name, c.Surface)
}

func (p *Harness) runScript(ctx context.Context, c Case) (Answer, error) {
	bounded, cancel := context.WithTimeout(ctx, c.limit()+hungAfter)
	defer cancel()
	began := time.Now()
	r, err := p.Sandbox().Run(bounded, env.Command{Args: []string{"bash", "-c", c.text()}, Timeout: c.limit(), MaxOutput: 64 << 10})
	return Answer{
		Text: string(r.Output), Exit: &r.ExitCode, TimedOut: r.TimedOut, IsError: r.ExitCode != 0,
		Limit: c.limit(), Took: time.Since(began), Err: cmp.Or(ctx.Err(), err),
	}, nil
}

// mismatches returns the differences between an answer and the expected answer.
func mismatches(w Want, a Answer) []string {
	var wrong []string
	add := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	if w.Time == InTime && a.TimedOut || w.Time == TimesOut && !a.TimedOut {
		add("timed out: %v", a.TimedOut)
	}
	if w.Exit != nil && !a.TimedOut {
		if a.Exit == nil {
			add("no exit code, want one of %v", w.Exit)
		} else if !slices.Contains(w.Exit, *a.Exit) {
			add("exit code %d, want one of %v", *a.Exit, w.Exit)
		}
	}
	for _, text := range w.Has {
		if !strings.Contains(a.Text, text) {
			add("%q is missing", text)
		}
	}
	for _, text := range w.Lacks {
		if strings.Contains(a.Text, text) {
			add("contains %q", text)
		}
	}
	if w.MaxBytes > 0 && len(a.Text) > w.MaxBytes {
		add("%d bytes, more than %d", len(a.Text), w.MaxBytes)
	}
	return wrong
}

// path returns the path of a file in the workspace.
func (p *Harness) path(name string) string {
	return env.WorkdirOf(p.Sandbox(), schemas.DefaultWorkdir) + "/" + name
}

// shorten quotes a text for a message and omits the middle of a long one.
func shorten(s string) string {
	if len(s) > 600 {
		return fmt.Sprintf("%q ... %q (%d bytes)", s[:300], s[len(s)-300:], len(s))
	}
	return fmt.Sprintf("%q", s)
}
