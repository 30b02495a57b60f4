package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/cmd/internal/cli"
	"github.com/tracesmith/tracesmith/cmd/internal/wire"
	"github.com/tracesmith/tracesmith/configs"
	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
)

// envBench measures one sandbox kind on the first task of the source. The calls of a group
// alternate, so that a busy moment of the machine affects all of them. The first round does
// not count.
type envBench struct {
	bench  *wire.Workbench
	kind   string
	rounds int
	task   schemas.Task
	file   string // of the task's program
	line   int    // at which a breakpoint stops
	bare   bareCosts
	rows   []measure
}

// benchCall is a tool call whose latency is measured.
type benchCall struct {
	name, tool, args string   // %d in args stands for the round
	target           float64  // for the median overhead in milliseconds; 0: no target
	bare             *float64 // the cost without tracesmith; nil if it was not measured
}

// benchEnv measures one sandbox kind.
func benchEnv(ctx context.Context, s *cli.State, cfg configs.Config, kind string, rounds int) ([]measure, error) {
	cfg.Sandbox.Kind = kind
	bench, err := wire.NewWorkbench(ctx, cfg, s.Host())
	if err != nil {
		return nil, cli.Usage(err)
	}
	defer func() { _ = bench.Close() }()
	b := &envBench{bench: bench, kind: kind, rounds: rounds}
	if b.task, err = firstTask(ctx, bench, cfg.Tasks); err != nil {
		return nil, err
	}
	if b.file, b.line, err = programLine(ctx, bench, b.task); err != nil {
		return nil, err
	}
	if err := b.lifecycle(ctx); err != nil {
		return nil, err
	}
	return b.rows, b.episodes(ctx)
}

// lifecycle measures starts, resets and ends of sandboxes, and then the tool calls.
func (b *envBench) lifecycle(ctx context.Context) error {
	m := &meter{}
	e, err := b.bench.NewEnvOn(ctx, meteredDriver{b.bench.Driver(b.task), m}, b.task)
	if err != nil {
		return err
	}
	defer func() { _ = e.Close(context.WithoutCancel(ctx)) }()
	var starts, hard, soft, ends []sample
	for i := range max(2, b.rounds/5) + 1 {
		timed := func(list *[]sample, f func() error) error {
			start := time.Now()
			if err := f(); err != nil {
				return err
			}
			if i > 0 {
				*list = append(*list, sample{wall: time.Since(start)})
			}
			return nil
		}
		if err := timed(&hard, func() error { _, err := e.Reset(ctx, false); return err }); err != nil && i == 0 {
			return &cli.Error{Code: cli.ExitPreflight, Err: err}
		} else if err != nil {
			return err
		}
		if i > 0 {
			starts = append(starts, sample{wall: m.lastStart()})
		} else if b.bare, err = measureBare(ctx, b.kind, b.rounds); err != nil {
			return err
		}
		if err := timed(&soft, func() error { _, err := e.Reset(ctx, true); return err }); err != nil {
			return err
		}
		if err := timed(&ends, func() error { return e.Close(ctx) }); err != nil {
			return err
		}
	}
	if _, err := e.Reset(ctx, false); err != nil {
		return err
	}
	b.add("sandbox: cold start, guest ready", starts, b.startTarget(), false, b.bare.start)
	b.add("reset, hard", hard, 0, false, nil)
	b.add("reset, soft", soft, 0, false, nil)
	b.add("sandbox: end", ends, 0, false, nil)
	return b.calls(ctx, e, m)
}

// startTarget returns the target for a cold start in milliseconds; 0 if there is none. The
// target for docker depends on the time that the daemon itself takes.
func (b *envBench) startTarget() float64 {
	switch {
	case b.kind == "bubblewrap":
		return 25
	case b.kind == "docker" && b.bare.start != nil:
		return *b.bare.start + 40
	}
	return 0
}

// calls measures the tool calls in groups, the last one with the debugger at a breakpoint.
func (b *envBench) calls(ctx context.Context, e env.Env, m *meter) error {
	groups := [][]benchCall{{
		{"bash true", "bash", `{"command":"true"}`, 2, b.bare.program},
		{"view", "view", fmt.Sprintf(`{"path":%q}`, b.file), 2, nil},
		{"listdir", "listdir", `{"depth":2}`, 2, nil},
		{"grep", "grep", `{"pattern":"def "}`, 2, nil},
		{"edit", "edit", `{"path":"bench_scratch.py","new_code":"value = %d\n"}`, 2, nil},
	}, {
		{"eval", "eval", `{}`, 0, nil},
		{"pdb restart to first prompt", "pdb", `{"command":"restart"}`, 0, nil},
	}, {
		{"pdb p 1", "pdb", `{"command":"p 1"}`, 3, b.bare.pdb},
		{"pdb where", "pdb", `{"command":"w"}`, 3, nil},
	}}
	for i, group := range groups {
		rounds := b.rounds
		if i == 1 {
			rounds = max(2, b.rounds/10)
			if _, err := b.call(ctx, e, benchCall{name: "pdb start", tool: "pdb", args: fmt.Sprintf(`{"command":"b %s:%d"}`, b.file, b.line)}, 0); err != nil {
				return err
			}
		}
		samples := make([][]sample, len(group))
		for round := range rounds + 1 {
			for j, c := range group {
				m.takeProgram()
				wall, err := b.call(ctx, e, c, round)
				if err != nil {
					return err
				}
				if round > 0 {
					samples[j] = append(samples[j], sample{wall, m.takeProgram()})
				}
			}
		}
		for j, c := range group {
			b.add(c.name, samples[j], c.target, true, c.bare)
		}
	}
	return nil
}

// call makes one tool call and returns its wall time.
func (b *envBench) call(ctx context.Context, e env.Env, c benchCall, round int) (time.Duration, error) {
	start := time.Now()
	info, err := e.Step(ctx, schemas.ToolCall{ID: "1", Name: c.tool, Arguments: json.RawMessage(strings.ReplaceAll(c.args, "%d", fmt.Sprint(round)))})
	elapsed := time.Since(start)
	if err != nil {
		return elapsed, fmt.Errorf("measuring %s: %w", c.name, err)
	}
	if info.Observation.IsError && c.tool != "eval" {
		return elapsed, fmt.Errorf("measuring %s: %s", c.name, info.Observation.Text)
	}
	return elapsed, nil
}

// episodes measures whole 12-step episodes of trivial calls, from a cold start to the
// end of the sandbox.
func (b *envBench) episodes(ctx context.Context) error {
	calls := []schemas.ToolCall{}
	for _, c := range [][2]string{
		{"listdir", `{}`}, {"view", fmt.Sprintf(`{"path":%q}`, b.file)}, {"grep", `{"pattern":"def "}`},
		{"bash", `{"command":"true"}`}, {"pdb", fmt.Sprintf(`{"command":"b %s:%d"}`, b.file, b.line)}, {"pdb", `{"command":"p 1"}`},
		{"pdb", `{"command":"w"}`}, {"edit", `{"path":"bench_scratch.py","new_code":"value = 2\n"}`}, {"pdb", `{"command":"p 2"}`},
		{"view", `{"path":"bench_scratch.py"}`}, {"bash", `{"command":"pwd"}`}, {"submit", `{}`},
	} {
		calls = append(calls, schemas.ToolCall{ID: fmt.Sprint(len(calls)), Name: c[0], Arguments: json.RawMessage(c[1])})
	}
	var samples []sample
	for i := range max(2, b.rounds/10) + 1 {
		start := time.Now()
		if err := b.episode(ctx, calls); err != nil {
			return err
		}
		if i > 0 {
			samples = append(samples, sample{wall: time.Since(start)})
		}
	}
	b.add("12-step episode with two pdb starts", samples, 1500, false, nil)
	return nil
}

func (b *envBench) episode(ctx context.Context, calls []schemas.ToolCall) error {
	e, err := b.bench.NewEnv(ctx, b.task)
	if err != nil {
		return err
	}
	defer func() { _ = e.Close(context.WithoutCancel(ctx)) }()
	if _, err := e.Reset(ctx, false); err != nil {
		return err
	}
	for _, call := range calls {
		if _, err := e.Step(ctx, call); err != nil {
			return err
		}
	}
	return e.Close(ctx)
}
