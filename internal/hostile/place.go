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

// Place is an environment of the Repository's task in which cases are played.
// One goroutine uses it.
type Place struct {
	Env env.Env
	// Sandbox is the one the environment uses now.
	Sandbox func() env.Sandbox
	// Isolated: processes of the place are its own, and all of them can be seen.
	Isolated bool

	answers int    // given so far, in the probes
	suffix  string // what the debugger's answer ends with while it stands still
}

// Grace is how much later than its limit an answer may come.
const Grace = time.Second

// hungAfter is when an answer is no longer waited for, counted from the limit.
const hungAfter = 30 * time.Second

// Answer is what became of one call.
type Answer struct {
	Text     string
	Exit     *int
	TimedOut bool
	IsError  bool
	Limit    time.Duration // what the call may take
	Took     time.Duration
	Before   time.Duration // how late an earlier answer of the same case came
	Err      error         // of the environment, a death among them
}

// Late is how much later than limit and grace it came, or an earlier answer of its
// case did, 0 if none did.
func (a Answer) Late() time.Duration { return max(a.Before, a.Took-a.Limit-Grace) }

// Hung: no answer came at all.
func (a Answer) Hung() bool { return errors.Is(a.Err, context.DeadlineExceeded) }

// Died: the sandbox is gone.
func (a Answer) Died() bool { return errors.Is(a.Err, env.ErrSandboxDied) }

// Call makes one tool call. Its limit is sent along where the tool takes one.
func (p *Place) Call(ctx context.Context, tool string, args map[string]any, limit time.Duration) Answer {
	if tool == string(Bash) || tool == string(Pdb) {
		args["timeout"] = int(limit / time.Second)
	}
	raw, err := json.Marshal(args)
	if err != nil {
		return Answer{Err: fmt.Errorf("encoding a call: %w", err)}
	}
	wait := limit + hungAfter
	if tool == string(Eval) { // takes its limit from the context: a second less
		wait = limit + Grace
	}
	bounded, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	p.answers++
	began := time.Now()
	info, err := p.Env.Step(bounded, schemas.ToolCall{ID: fmt.Sprint(p.answers), Name: tool, Arguments: raw})
	o := info.Observation
	return Answer{
		Text: o.Text, Exit: o.ExitCode, TimedOut: o.TimedOut, IsError: o.IsError,
		Limit: limit, Took: time.Since(began), Err: cmp.Or(ctx.Err(), err),
	}
}

// Reset makes the place anew.
func (p *Place) Reset(ctx context.Context) error {
	p.suffix = ""
	_, err := p.Env.Reset(ctx, false)
	return err
}

// Verdict is what one played case came to.
type Verdict struct {
	Case   Case
	Answer Answer   // the case's own
	Wrong  []string // what of the answer is not as it must be
	// Misframed: a command after it was not answered correctly.
	Misframed []string
	Left      []string // processes that should be gone
	Died      bool
	Err       error // the place cannot go on, a death apart
}

// Failed says whether anything but the time is not as it must be.
func (v Verdict) Failed() bool {
	return len(v.Wrong)+len(v.Misframed)+len(v.Left) > 0 || v.Err != nil || v.Answer.Hung() || v.Died
}

func (v Verdict) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s): took %v of %v", v.Case.Name, v.Case.Door, v.Answer.Took.Round(time.Millisecond), v.Answer.Limit)
	for what, list := range map[string][]string{"wrong": v.Wrong, "misframed": v.Misframed, "left": v.Left} {
		for _, text := range list {
			fmt.Fprintf(&b, "\n  %s: %s", what, text)
		}
	}
	if v.Answer.Err != nil {
		fmt.Fprintf(&b, "\n  the call: %v", v.Answer.Err)
	}
	if v.Err != nil {
		fmt.Fprintf(&b, "\n  the place: %v", v.Err)
	}
	if len(v.Wrong) > 0 {
		fmt.Fprintf(&b, "\n  the answer was %s", short(v.Answer.Text))
	}
	return b.String()
}

// Play plays a case and asks the probes. After a death, or an error, the place
// must be made anew; after a case that spoils it it has been.
func (p *Place) Play(ctx context.Context, c Case) Verdict {
	v := Verdict{Case: c}
	v.Answer, v.Err = p.open(ctx, c)
	if v.Err != nil {
		return v
	}
	if v.Died = v.Answer.Died(); v.Died {
		if died, ok := errors.AsType[*env.DiedError](v.Answer.Err); ok && !died.DuringCommand {
			v.Wrong = append(v.Wrong, "the sandbox died, and does not say that a command was running")
		}
		return v
	}
	if v.Answer.Err != nil {
		if !v.Answer.Hung() {
			v.Err = v.Answer.Err
		}
		return v
	}
	v.Wrong = judge(c.Want, v.Answer)
	if v.Misframed, v.Err = p.probe(ctx, c); v.Err != nil {
		v.Died = errors.Is(v.Err, env.ErrSandboxDied)
		return v
	}
	if p.Isolated && !c.Leaves {
		v.Left, v.Err = p.leftovers(ctx)
	}
	if v.Err == nil && c.Leaves {
		v.Err = p.sweep(ctx)
	}
	if v.Err == nil && c.Spoils {
		v.Err = p.Reset(ctx)
	}
	return v
}

// open brings a case in by its door.
func (p *Place) open(ctx context.Context, c Case) (Answer, error) {
	switch c.Door {
	case Bash:
		return p.Call(ctx, "bash", map[string]any{"command": c.text()}, c.limit()), nil
	case Pdb:
		file := "hostile_program.py"
		if err := p.Sandbox().WriteFile(ctx, p.path(file), []byte(c.text()), 0o644); err != nil {
			return Answer{}, fmt.Errorf("writing the case's program: %w", err)
		}
		p.suffix = ""
		args := map[string]any{"command": "p 'ready'", "entrypoint": "python3 " + file}
		// Another entrypoint than the last one: a session of its own.
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
			a.Before = late
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
		return p.runCase(ctx, c)
	}
	return Answer{}, fmt.Errorf("case %s: no door %q", c.Name, c.Door)
}

func (p *Place) runCase(ctx context.Context, c Case) (Answer, error) {
	bounded, cancel := context.WithTimeout(ctx, c.limit()+hungAfter)
	defer cancel()
	began := time.Now()
	r, err := p.Sandbox().Run(bounded, env.Command{Args: []string{"bash", "-c", c.text()}, Timeout: c.limit(), MaxOutput: 64 << 10})
	return Answer{
		Text: string(r.Output), Exit: &r.ExitCode, TimedOut: r.TimedOut, IsError: r.ExitCode != 0,
		Limit: c.limit(), Took: time.Since(began), Err: cmp.Or(ctx.Err(), err),
	}, nil
}

// judge compares an answer with what it must hold.
func judge(w Want, a Answer) []string {
	var wrong []string
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	if w.Time == InTime && a.TimedOut || w.Time == TimesOut && !a.TimedOut {
		say("timed out: %v", a.TimedOut)
	}
	if w.Exit != nil && !a.TimedOut {
		if a.Exit == nil {
			say("no exit code, want one of %v", w.Exit)
		} else if !slices.Contains(w.Exit, *a.Exit) {
			say("exit code %d, want one of %v", *a.Exit, w.Exit)
		}
	}
	for _, text := range w.Has {
		if !strings.Contains(a.Text, text) {
			say("no %q", text)
		}
	}
	for _, text := range w.Lacks {
		if strings.Contains(a.Text, text) {
			say("holds %q", text)
		}
	}
	if w.MaxBytes > 0 && len(a.Text) > w.MaxBytes {
		say("%d bytes, more than %d", len(a.Text), w.MaxBytes)
	}
	return wrong
}

// path is a file of the workspace.
func (p *Place) path(name string) string {
	return env.WorkdirOf(p.Sandbox(), schemas.DefaultWorkdir) + "/" + name
}

// short shows a text in a message.
func short(s string) string {
	if len(s) > 600 {
		return fmt.Sprintf("%q ... %q (%d bytes)", s[:300], s[len(s)-300:], len(s))
	}
	return fmt.Sprintf("%q", s)
}
