package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/cmd/tracesmith/internal/wire"
	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
)

// envBench measures one sandbox kind on the first built-in task.
type envBench struct {
	bench  *wire.Workbench
	kind   string
	rounds int
	rows   []measure
}

// sample is one measured call: wall time and the program's own part of it.
type sample struct{ wall, program time.Duration }

// benchCall is a tool call whose latency is measured.
type benchCall struct {
	what, tool, args string  // %d in args is the round
	target           float64 // milliseconds of the overhead median; 0 = none
}

func (b *envBench) run(ctx context.Context) ([]measure, error) {
	task, err := b.bench.AnyTask(ctx)
	if err != nil {
		return nil, err
	}
	meter := &wire.Meter{}
	e, err := b.bench.NewMeteredEnv(ctx, task, meter)
	if err != nil {
		return nil, err
	}
	defer func() { _ = e.Close(context.WithoutCancel(ctx)) }()
	starts, resets := []sample{}, []sample{}
	for i := range max(2, b.rounds/5) {
		began := time.Now()
		if _, err := e.Reset(ctx, false); err != nil && i == 0 {
			return nil, &Error{Code: ExitPreflight, Err: err}
		} else if err != nil {
			return nil, err
		}
		resets = append(resets, sample{wall: time.Since(began)})
		starts = append(starts, sample{wall: meter.TakeStart()})
	}
	b.add("cold sandbox, guest ready", starts, startTarget(b.kind), false)
	b.add("hard reset", resets, 0, false)
	if err := b.calls(ctx, e, meter, task); err != nil {
		return nil, err
	}
	return b.rows, b.episodes(ctx, task)
}

// startTarget is the bound on a cold start; docker's depends on what the daemon
// itself takes and is judged by a reader.
func startTarget(kind string) float64 {
	if kind == "bubblewrap" {
		return 25
	}
	return 0
}

func (b *envBench) calls(ctx context.Context, e env.Env, meter *wire.Meter, task schemas.Task) error {
	file, line, err := b.bench.ProgramLine(ctx, task)
	if err != nil {
		return err
	}
	for _, c := range []benchCall{
		{"bash true", "bash", `{"command":"true"}`, 2},
		{"view", "view", fmt.Sprintf(`{"path":%q}`, file), 2},
		{"listdir", "listdir", `{"depth":2}`, 2},
		{"grep", "grep", `{"pattern":"def "}`, 2},
		{"edit", "edit", `{"path":"bench_scratch.py","new_code":"value = %d\n"}`, 2},
		{"eval", "eval", `{}`, 0},
		{"pdb start + breakpoint", "pdb", fmt.Sprintf(`{"command":"b %s:%d"}`, file, line), 0},
		{"pdb p 1", "pdb", `{"command":"p 1"}`, 3},
	} {
		rounds := b.rounds
		if c.tool == "eval" {
			rounds = max(2, b.rounds/10)
		}
		if c.what == "pdb start + breakpoint" {
			rounds = 1
		}
		var samples []sample
		for i := range rounds {
			meter.TakeProgram()
			began := time.Now()
			info, err := e.Step(ctx, schemas.ToolCall{ID: fmt.Sprint(i), Name: c.tool, Arguments: json.RawMessage(strings.ReplaceAll(c.args, "%d", fmt.Sprint(i)))})
			if err != nil {
				return fmt.Errorf("measuring %s: %w", c.what, err)
			}
			if info.Observation.IsError && c.tool != "eval" {
				return fmt.Errorf("measuring %s: %s", c.what, info.Observation.Text)
			}
			samples = append(samples, sample{time.Since(began), meter.TakeProgram()})
		}
		b.add(c.what, samples, c.target, true)
	}
	return nil
}

// episodes measures whole 12-step episodes of trivial calls, from a cold
// sandbox to its end.
func (b *envBench) episodes(ctx context.Context, task schemas.Task) error {
	file, line, err := b.bench.ProgramLine(ctx, task)
	if err != nil {
		return err
	}
	calls := []schemas.ToolCall{}
	for _, c := range [][2]string{
		{"listdir", `{}`}, {"view", fmt.Sprintf(`{"path":%q}`, file)}, {"grep", `{"pattern":"def "}`},
		{"bash", `{"command":"true"}`}, {"pdb", fmt.Sprintf(`{"command":"b %s:%d"}`, file, line)}, {"pdb", `{"command":"p 1"}`},
		{"pdb", `{"command":"w"}`}, {"edit", `{"path":"bench_scratch.py","new_code":"value = 2\n"}`}, {"pdb", `{"command":"p 2"}`},
		{"view", `{"path":"bench_scratch.py"}`}, {"bash", `{"command":"pwd"}`}, {"submit", `{}`},
	} {
		calls = append(calls, schemas.ToolCall{ID: fmt.Sprint(len(calls)), Name: c[0], Arguments: json.RawMessage(c[1])})
	}
	var samples []sample
	for range max(2, b.rounds/10) {
		began := time.Now()
		if err := b.episode(ctx, task, calls); err != nil {
			return err
		}
		samples = append(samples, sample{wall: time.Since(began)})
	}
	b.add("12-step episode with two pdb starts", samples, 1500, false)
	return nil
}

func (b *envBench) episode(ctx context.Context, task schemas.Task, calls []schemas.ToolCall) error {
	e, err := b.bench.NewEnv(ctx, task)
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

// add records a measure; the target bounds the overhead where there is one,
// otherwise the median.
func (b *envBench) add(what string, samples []sample, target float64, program bool) {
	wall, over := []float64{}, []float64{}
	for _, s := range samples {
		wall = append(wall, milliseconds(s.wall))
		over = append(over, milliseconds(s.wall-s.program))
	}
	m := measure{Sandbox: b.kind, What: what, N: len(samples), Median: quantile(wall, 0.5), P99: quantile(wall, 0.99)}
	judged := m.Median
	if program {
		om, op := quantile(over, 0.5), quantile(over, 0.99)
		m.OverheadMedian, m.OverheadP99, judged = &om, &op, om
	}
	if target > 0 {
		met := judged <= target
		m.Target, m.Met = fmt.Sprintf("≤ %g ms", target), &met
	}
	b.rows = append(b.rows, m)
}

// quantile is the nearest-rank quantile of unsorted values.
func quantile(values []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	rank := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[max(0, min(rank, len(sorted)-1))]
}
