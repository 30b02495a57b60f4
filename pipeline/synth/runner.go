package synth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tracesmith/tracesmith/env"
)

// runner is the process that runs the tests in a sandbox (python/tracesmith_runner.py).
type runner struct {
	term env.Terminal
	buf  []byte // received, but not yet returned by read
}

// runIn runs the tests in a sandbox, kills every process that they started, and lists the
// files that they left in the tree. If the tests end or disturb the runner, into says how,
// and contains no records. An error is an infrastructure failure.
func (b *bench) runIn(ctx context.Context, sb env.Sandbox, seed string, q request, into *answer) error {
	line, err := json.Marshal(q)
	if err != nil {
		return err
	}
	term, err := sb.Open(ctx, env.TerminalSpec{
		Args: []string{"python3", "-B", scratch(sb) + "/tracesmith_runner.py"}, Dir: b.workdir(sb), Env: []string{"PYTHONHASHSEED=" + seed},
	})
	if err != nil {
		return fmt.Errorf("starting the runner: %w", err)
	}
	r := &runner{term: term}
	if err := term.Write(ctx, append(line, '\n')); err != nil {
		return fmt.Errorf("starting the runner: %w", err)
	}
	err = r.read(ctx, time.Duration(q.Timeout*float64(time.Second))+grace, into)
	if err == nil {
		err = term.KillChildren(ctx, 0)
	}
	if err == nil {
		err = term.Write(ctx, []byte("left\n"))
	}
	if err == nil {
		err = r.read(ctx, helperTimeout, into)
	}
	code, ended := term.Exit()
	switch {
	case err == nil, ctx.Err() != nil:
		return err
	case errors.Is(err, errSilent):
		*into = answer{TimedOut: true, Log: err.Error()}
	case errors.Is(err, errGarbled):
		*into = answer{Log: err.Error()}
	case ended:
		*into = answer{Log: fmt.Sprintf("the test runner ended with exit code %d: %s", code, r.buf[:min(len(r.buf), 500)])}
	default:
		return err
	}
	return nil
}

// Errors of a runner that the tests disturbed without ending it.
var (
	errGarbled = errors.New("the test runner's answer cannot be read")
	errSilent  = errors.New("the test runner did not answer")
)

// read reads one line of JSON into into, and waits for it no longer than wait.
func (r *runner) read(ctx context.Context, wait time.Duration, into any) error {
	deadline := time.Now().Add(wait)
	scanned := 0
	for {
		if n := bytes.IndexByte(r.buf[scanned:], '\n'); n >= 0 {
			line := r.buf[:scanned+n]
			r.buf = r.buf[scanned+n+1:]
			if json.Unmarshal(line, into) != nil {
				return fmt.Errorf("%w: %q", errGarbled, line[:min(len(line), 200)])
			}
			return nil
		}
		scanned = len(r.buf)
		remaining := time.Until(deadline)
		switch {
		case remaining <= 0:
			return fmt.Errorf("%w for %s", errSilent, wait)
		case len(r.buf) > maxAnswer:
			return fmt.Errorf("%w: it has more than %d bytes", errGarbled, maxAnswer)
		}
		data, err := r.term.Read(ctx, min(remaining, 5*time.Second))
		if err != nil {
			return fmt.Errorf("reading from the runner: %w", err)
		}
		r.buf = append(r.buf, data...)
	}
}
