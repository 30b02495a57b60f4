package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/cmd/internal/cli"
	"github.com/tracesmith/tracesmith/cmd/internal/wire"
	"github.com/tracesmith/tracesmith/configs"
	"github.com/tracesmith/tracesmith/pipeline/observe"
	"github.com/tracesmith/tracesmith/schemas"
)

// durabilityShare is the target for the share by which durability lengthens an episode.
const durabilityShare = 0.10

func newBenchEpisodes(s *cli.State) *cobra.Command {
	var f cli.ConfigFlags
	var dir string
	var rounds int
	var asJSON bool
	c := &cobra.Command{
		Use: "episodes", Short: "Measure the cost of durability for whole episodes", Args: cli.RangeArgs(0, 0),
		Long: `Run 12-step episodes without a model through the pipeline, which writes each
step to disk before the next one. Alternate them with bare episodes, which have
no queue, step log or staging. Both are graded. Durability may add 10 % to the
time of a bare episode; a missed target is reported but is not a failure. --dir
should be on the disk that runs will use.`,
		Example: "  tracesmith-lab bench episodes\n  tracesmith-lab bench episodes --rounds 100 --dir /data --json",
		RunE: func(c *cobra.Command, _ []string) error {
			if rounds < 2 {
				return cli.Usage(fmt.Errorf("--rounds must be at least 2, got %d", rounds))
			}
			cfg, err := f.Load(s)
			if err != nil {
				return err
			}
			report, err := benchEpisodes(c.Context(), s, cfg, dir, rounds)
			if err != nil {
				return err
			}
			if asJSON {
				return cli.PrintJSON(s, report)
			}
			return report.print(s)
		},
	}
	f.Add(c)
	f.AddSandbox(c, " (default bubblewrap)")
	c.Flags().IntVar(&rounds, "rounds", 20, "episodes of each kind")
	c.Flags().StringVar(&dir, "dir", ".", "directory on the disk to measure; nothing is left in it")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// episodesReport is what bench episodes prints.
type episodesReport struct {
	Schema  string  `json:"schema"`
	Machine machine `json:"machine"`
	Sandbox string  `json:"sandbox"`
	Rounds  int     `json:"rounds"`
	Bare    float64 `json:"bare_ms"`
	Durable float64 `json:"durable_ms"`
	Cost    float64 `json:"cost_ms"` // median difference between a durable episode and the bare one after it
	Share   float64 `json:"share"`   // Cost / Bare
	Target  float64 `json:"target"`
	Met     bool    `json:"met"`
	Sync    float64 `json:"sync_ms"` // median time to write 4 KiB and fsync
	SyncP99 float64 `json:"sync_p99_ms"`
	Memory  bool    `json:"in_memory"` // the directory is not on a disk
}

// pairObserver runs a bare episode after each durable one in the same process, so that a busy
// moment of the machine affects both.
type pairObserver struct {
	observe.Silent
	ctx           context.Context
	run           *wire.Run
	since         time.Time // start of the current durable episode
	durable, bare []float64 // milliseconds
	err           error
}

func (p *pairObserver) JobStarted(schemas.Job, int) {
	if p.since.IsZero() {
		p.since = time.Now()
	}
}

func (p *pairObserver) JobFinished(j schemas.Job, e observe.Episode) {
	elapsed := milliseconds(time.Since(p.since))
	start := time.Now()
	err := bareEpisode(p.ctx, p.run, j)
	if e.Outcome == schemas.OutcomeInfra {
		err = errors.Join(err, fmt.Errorf("an episode failed: %s", e.Cause))
	}
	p.durable, p.bare, p.err = append(p.durable, elapsed), append(p.bare, milliseconds(time.Since(start))), errors.Join(p.err, err)
	p.since = time.Now() // the next durable episode includes the claim of its job
}

// bareEpisode runs one job with the agent and the verifier, without the pipeline that makes
// episodes durable.
func bareEpisode(ctx context.Context, r *wire.Run, j schemas.Job) (err error) {
	task := r.Tasks[slices.IndexFunc(r.Tasks, func(t schemas.Task) bool { return t.ID == j.TaskID })]
	e, err := r.NewEnv(ctx, j, task)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close(context.WithoutCancel(ctx))) }()
	policy, err := r.Agent.Policy(j, task)
	if err != nil {
		return err
	}
	if _, err := agents.Run(ctx, agents.Config{Env: e, Policy: policy, Job: j, Task: task}); err != nil {
		return fmt.Errorf("running a bare episode: %w", err)
	}
	patch, sha, err := e.Patch(ctx)
	if err != nil {
		return fmt.Errorf("taking the patch: %w", err)
	}
	if task.Tests.NeedsBaseline() {
		if task.Tests, err = r.Baseline(ctx, task); err != nil {
			return err
		}
	}
	tree, err := r.Bench.Source.Tree(ctx, task.InstanceID)
	if err != nil {
		return fmt.Errorf("opening the repository: %w", err)
	}
	_, err = r.Bench.Verify(ctx, task, tree, patch, sha)
	return err
}

func benchEpisodes(ctx context.Context, s *cli.State, cfg configs.Config, dir string, rounds int) (r episodesReport, err error) {
	place, err := os.MkdirTemp(dir, "tracesmith-bench-")
	if err != nil {
		return r, cli.Usage(fmt.Errorf("--dir: %w", err))
	}
	defer func() { err = errors.Join(err, os.RemoveAll(place)) }()
	r = episodesReport{Schema: "tracesmith.bench.episodes/1", Machine: thisMachine(), Rounds: rounds, Target: durabilityShare, Memory: inMemory(place)}
	r.Machine.Load[0] = load()
	if cfg, err = scriptedEpisodes(ctx, s, cfg, filepath.Join(place, "run"), rounds+1); err != nil {
		return r, err
	}
	r.Sandbox = cfg.Sandbox.Kind
	p := &pairObserver{ctx: ctx}
	p.run, err = wire.NewRun(ctx, cfg, wire.RunOptions{
		Command: []string{"tracesmith-lab", "bench", "episodes"}, Producer: cli.Version, Getenv: s.Getenv, Progress: s.Stderr, Warn: s.Stderr, Observer: p,
	})
	if err != nil {
		return r, cli.Usage(err)
	}
	defer func() { err = errors.Join(err, p.run.Close()) }()
	if _, err := p.run.Execute(ctx); err != nil || p.err != nil {
		return r, errors.Join(err, p.err)
	}
	if len(p.bare) != rounds+1 {
		return r, fmt.Errorf("%d of %d episodes finished", len(p.bare), rounds+1)
	}
	var differences []float64
	for i := range p.bare[1:] { // the first pair does not count
		differences = append(differences, p.durable[i+1]-p.bare[i+1])
	}
	r.Durable, r.Bare, r.Cost = quantile(p.durable[1:], 0.5), quantile(p.bare[1:], 0.5), quantile(differences, 0.5)
	r.Share = r.Cost / r.Bare
	r.Met = r.Share <= r.Target
	syncs, err := measureSyncs(filepath.Join(place, "sync"), max(50, rounds))
	if err != nil {
		return r, err
	}
	r.Sync, r.SyncP99 = quantile(syncs, 0.5), quantile(syncs, 0.99)
	r.Machine.Load[1] = load()
	return r, nil
}

// scriptedEpisodes returns the configuration of a batch whose agent makes a fixed list of
// calls on the first task.
func scriptedEpisodes(ctx context.Context, s *cli.State, cfg configs.Config, run string, episodes int) (configs.Config, error) {
	cfg.Sandbox.Kind = cmp.Or(cfg.Sandbox.Kind, "bubblewrap")
	bench, err := wire.NewWorkbench(ctx, cfg, s.Host())
	if err != nil {
		return cfg, cli.Usage(err)
	}
	defer func() { _ = bench.Close() }()
	task, err := firstTask(ctx, bench, cfg.Tasks)
	if err != nil {
		return cfg, err
	}
	file, line, err := programLine(ctx, bench, task)
	if err != nil {
		return cfg, err
	}
	call := func(tool string, arguments map[string]any) map[string]any {
		return map[string]any{"tool": tool, "arguments": arguments}
	}
	cfg.Agent.Kind, cfg.Agent.Tools = "scripted", configs.Tools("listdir", "view", "grep", "bash", "pdb", "edit", "submit")
	cfg.Agent.With = configs.Block{"calls": []any{
		call("listdir", map[string]any{}), call("view", map[string]any{"path": file}), call("grep", map[string]any{"pattern": "def "}),
		call("bash", map[string]any{"command": "true"}), call("pdb", map[string]any{"command": fmt.Sprintf("b %s:%d", file, line)}),
		call("pdb", map[string]any{"command": "p 1"}), call("pdb", map[string]any{"command": "w"}),
		call("edit", map[string]any{"path": "bench_scratch.py", "new_code": "value = 2\n"}), call("pdb", map[string]any{"command": "p 2"}),
		call("view", map[string]any{"path": "bench_scratch.py"}), call("bash", map[string]any{"command": "pwd"}), call("submit", map[string]any{}),
	}}
	cfg.Tasks.IDs = []string{task.InstanceID}
	cfg.Run.Name, cfg.Run.Dir, cfg.Run.Workers, cfg.Run.Attempts, cfg.Publish.To = "bench", run, 1, episodes, ""
	return cfg, nil
}

// measureSyncs measures how long it takes to append 4 KiB to a file and sync it.
func measureSyncs(path string, n int) ([]float64, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("measuring syncs: %w", err)
	}
	defer f.Close()
	block := make([]byte, 4096)
	var out []float64
	for range n {
		start := time.Now()
		if _, err := f.Write(block); err != nil {
			return nil, fmt.Errorf("measuring syncs: %w", err)
		}
		if err := f.Sync(); err != nil {
			return nil, fmt.Errorf("measuring syncs: %w", err)
		}
		out = append(out, milliseconds(time.Since(start)))
	}
	return out, nil
}

// inMemory reports whether a directory is on a file system in memory, where fsync does
// nothing.
func inMemory(dir string) bool {
	var st unix.Statfs_t
	return unix.Statfs(dir, &st) == nil && (st.Type == unix.TMPFS_MAGIC || st.Type == unix.RAMFS_MAGIC)
}

func (r episodesReport) print(s *cli.State) error {
	verdict := map[bool]string{true: "met", false: "missed"}[r.Met]
	_, err := fmt.Fprintf(s.Stdout, `%s
12-step episodes, graded, %s, %d of each kind in turn
  bare      %8.1f ms
  durable   %8.1f ms
  cost      %8.1f ms, %.1f %% (target: at most %.0f %%: %s)
  one sync  %8.2f ms, p99 %.2f
`, r.Machine, r.Sandbox, r.Rounds, r.Bare, r.Durable, r.Cost, 100*r.Share, 100*r.Target, verdict, r.Sync, r.SyncP99)
	if r.Memory {
		fmt.Fprintln(s.Stderr, "warning: the directory is in memory, where a sync costs nothing: name one on a disk with --dir")
	}
	if err != nil {
		return fmt.Errorf("writing output: %w", err)
	}
	return nil
}
