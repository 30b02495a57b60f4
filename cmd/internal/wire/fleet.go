package wire

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/configs"
	"github.com/tracesmith/tracesmith/pipeline"
	"github.com/tracesmith/tracesmith/pipeline/engine"
	"github.com/tracesmith/tracesmith/pipeline/fleet"
	"github.com/tracesmith/tracesmith/pipeline/observe"
	"github.com/tracesmith/tracesmith/pipeline/redact"
	"github.com/tracesmith/tracesmith/schemas"
)

// Dial connects to the cluster of a configuration.
func Dial(ctx context.Context, cfg configs.NATS, patience time.Duration) (*engine.Conn, error) {
	for part := range strings.SplitSeq(cfg.URL, ",") {
		scheme, _, named := strings.Cut(strings.TrimSpace(part), "://")
		if named && !slices.Contains([]string{"nats", "tls", "ws", "wss"}, scheme) {
			return nil, &pipeline.StopError{Code: 2, Err: fmt.Errorf("%s:// is not a scheme of NATS servers", scheme), Remedy: "give nats://HOST:PORT, several separated by commas"}
		}
	}
	return engine.Dial(ctx, engine.Cluster{
		URL: cfg.URL, Creds: cfg.Creds, CA: cfg.TLS.CA, Cert: cfg.TLS.Cert, Key: cfg.TLS.Key, Replicas: cfg.Replicas, Patience: patience,
	})
}

// stagingPlace returns the path or URI where a run stages its episodes; "" means the run
// directory.
func stagingPlace(cfg configs.Run, runID string) string {
	switch {
	case cfg.Staging == "":
		return ""
	case strings.Contains(cfg.Staging, "://"):
		return strings.TrimSuffix(cfg.Staging, "/") + "/" + runID
	}
	return filepath.Join(cfg.Staging, runID)
}

// offer is the JSON document from which workers of a cluster learn how to execute a run's
// jobs. It holds no keys or passwords: each worker takes them from its environment.
type offer struct {
	RunID       string            `json:"run_id"`
	Config      configs.Config    `json:"config"`
	ModelsEntry string            `json:"named,omitempty"` // see configs.LLM
	Identity    map[string]string `json:"identity"`
	Tasks       string            `json:"tasks"`   // hash of their contents
	Staging     string            `json:"staging"` // an absolute path or a URI
	Shared      bool              `json:"shared"`  // staging is the run's directory
}

func (r *Run) offer(cfg pipeline.Config) ([]byte, error) {
	o := offer{RunID: cfg.RunID, Config: r.cfg, ModelsEntry: r.cfg.LLM.ModelsEntry, Identity: cfg.Identity, Tasks: tasksHash(r.Tasks), Staging: cfg.Staging, Shared: cfg.Staging == ""}
	if o.Shared {
		o.Staging = r.cfg.Run.Dir
	}
	if !strings.Contains(o.Staging, "://") {
		abs, err := filepath.Abs(o.Staging)
		if err != nil {
			return nil, fmt.Errorf("finding the staging directory: %w", err)
		}
		o.Staging = abs
	}
	return json.Marshal(o)
}

// tasksHash hashes the ids of tasks, which cover the tasks' contents.
func tasksHash(tasks []schemas.Task) string {
	var ids []string
	for _, t := range tasks {
		ids = append(ids, t.ID)
	}
	return schemas.ShortHash(ids)
}

// WorkerOptions configure a Worker.
type WorkerOptions struct {
	RunID    string // only this run; "": any run with a coordinator
	Name     string
	Slots    int
	Patience time.Duration
	Version  string
	Commit   string
	Host     Host
	Progress io.Writer
	Drain    <-chan struct{}
	Hooks    pipeline.Hooks
}

// Worker executes jobs of runs that other processes coordinate.
type Worker struct {
	conn *engine.Conn
	opt  WorkerOptions
	self engine.WorkerEntry
}

// NewWorker returns a worker, which gets a generated name if opt has none.
func NewWorker(conn *engine.Conn, opt WorkerOptions) *Worker {
	host, _ := os.Hostname()
	id := engine.Instance()
	return &Worker{conn: conn, opt: opt, self: engine.WorkerEntry{
		ID: id, Name: cmp.Or(opt.Name, id), Host: host, PID: os.Getpid(), Version: opt.Version, Slots: opt.Slots, Running: []string{}, Begun: time.Now().UTC(),
	}}
}

// Serve executes one run after another, or only opt.RunID. It returns when opt.RunID has
// ended, the worker is drained, ctx ends, or no run needs workers for opt.Patience.
func (w *Worker) Serve(ctx context.Context) error {
	for {
		entry, err := w.await(ctx)
		if err == nil && entry.RunID != "" {
			err = w.execute(ctx, entry)
		}
		if err != nil || entry.RunID == "" || w.opt.RunID != "" && !w.takesWorkers(ctx) || w.drained() {
			return errors.Join(err, w.leave(ctx, err))
		}
	}
}

// takesWorkers reports whether opt.RunID still takes workers, because it got a new
// coordinator or more budget in the meantime.
func (w *Worker) takesWorkers(ctx context.Context) bool {
	entry, ok, err := w.conn.RunEntry(ctx, w.opt.RunID)
	return err == nil && ok && (entry.Phase == engine.Planning || entry.Phase == engine.Working)
}

// drained reports whether opt.Drain is closed.
func (w *Worker) drained() bool {
	select {
	case <-w.opt.Drain:
		return true
	default:
		return false
	}
}

// leave announces that this worker has left, if the cluster can be reached.
func (w *Worker) leave(ctx context.Context, err error) error {
	leaveCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
	defer cancel()
	w.self.State = "left"
	if stop, ok := errors.AsType[*pipeline.StopError](err); ok && stop.Code == 2 {
		w.self.State = "refused"
	}
	w.self.Running = []string{}
	if err != nil {
		reason, _, _ := strings.Cut(err.Error(), "\n")
		w.self.Reason = redact.New(redact.NewKnown(redact.Environment(w.opt.Host.Environ))).Text(reason)
	}
	_ = w.conn.PutWorker(leaveCtx, w.self) // if this fails, the coordinator notices that the worker is silent
	return nil
}

// await waits for a run that takes workers. It returns a zero RunEntry if no run needs
// workers for opt.Patience, opt.RunID is complete, or the worker is drained.
func (w *Worker) await(ctx context.Context) (engine.RunEntry, error) {
	start, revisions := time.Now(), map[string]uint64{}
	for {
		w.self.State, w.self.RunID = "waiting", ""
		if err := w.conn.PutWorker(ctx, w.self); err != nil {
			return engine.RunEntry{}, err
		}
		runs, err := w.conn.Runs(ctx)
		if err != nil {
			return engine.RunEntry{}, err
		}
		for _, r := range runs {
			if w.opt.RunID != "" && r.RunID != w.opt.RunID {
				continue
			}
			before, known := revisions[r.RunID]
			revisions[r.RunID] = r.Revision
			switch {
			case r.Phase == engine.Completed && w.opt.RunID != "":
				fmt.Fprintf(w.opt.Progress, "run %s is complete\n", r.RunID)
				return engine.RunEntry{}, nil
			case r.Phase == engine.Working && (known && before != r.Revision || w.opt.RunID != ""):
				return r, nil
			}
		}
		if time.Since(start) > w.opt.Patience {
			if w.opt.RunID != "" {
				return engine.RunEntry{}, &pipeline.StopError{Code: 7, Err: fmt.Errorf("run %s is not coordinated on %s (waited %s)", w.opt.RunID, w.conn.Place(), w.opt.Patience),
					Remedy: "start it with tracesmith run --nats; tracesmith status --nats lists the runs"}
			}
			fmt.Fprintf(w.opt.Progress, "no run on %s for %s\n", w.conn.Place(), w.opt.Patience)
			return engine.RunEntry{}, nil
		}
		select {
		case <-ctx.Done():
			return engine.RunEntry{}, context.Cause(ctx)
		case <-w.opt.Drain:
			return engine.RunEntry{}, nil
		case <-time.After(time.Second):
		}
	}
}

// execute executes jobs of a run until the run ends.
func (w *Worker) execute(ctx context.Context, entry engine.RunEntry) error {
	if entry.Version != w.opt.Version || entry.Protocol != engine.Protocol {
		return &pipeline.StopError{Code: 2, Err: fmt.Errorf("run %s is coordinated by tracesmith %s (protocol %d), and this worker is %s (protocol %d)",
			entry.RunID, entry.Version, entry.Protocol, w.opt.Version, engine.Protocol), Remedy: "install the same version here: rows of one run come from one version"}
	}
	o, spec, err := w.fetchOffer(ctx, entry)
	if err != nil {
		if w.conn.Completed(ctx, entry.RunID) {
			return nil
		}
		return err
	}
	cfg := o.Config
	cfg.LLM.ModelsEntry = o.ModelsEntry
	cfg.Run.Workers = w.opt.Slots
	run, err := NewRun(ctx, cfg, RunOptions{
		RunID: o.RunID, Cluster: w.conn, Drain: w.opt.Drain, Producer: w.opt.Version, Commit: w.opt.Commit, Getenv: w.opt.Host.Getenv, Environ: w.opt.Host.Environ,
		Progress: w.opt.Progress, Warn: w.opt.Host.Warn, Hooks: w.opt.Hooks,
	})
	if err != nil {
		return &pipeline.StopError{Code: 2, Err: fmt.Errorf("this machine cannot take part in run %s: %w", entry.RunID, err), Remedy: "copy the files that the run's configuration names to this machine, under the same paths"}
	}
	defer func() { _ = run.Close() }()
	parts, deps, err := run.parts(ctx)
	if err != nil {
		return err
	}
	if err := o.matches(parts, run.Tasks); err != nil {
		return err
	}
	if deps.Staging, err = OpenStore(ctx, o.Staging, cfg.S3); err != nil {
		return err
	}
	if parts.RunDir = o.Staging; !o.Shared {
		cache, err := os.UserCacheDir()
		if err != nil {
			cache = os.TempDir()
		}
		parts.RunDir = filepath.Join(cache, "tracesmith", "worker", o.RunID)
	}
	deps.Observer = observe.NewPlain(w.opt.Progress)
	run.reap(ctx)
	return fleet.Work(ctx, fleet.Config{Config: parts, Conn: w.conn, RunSpec: spec}, deps, w.self)
}

// fetchOffer returns the offer of a run, also as the document from which it was decoded.
func (w *Worker) fetchOffer(ctx context.Context, entry engine.RunEntry) (o offer, spec []byte, err error) {
	var info fleet.RunDetails
	if err := json.Unmarshal(entry.Info, &info); err != nil {
		return o, nil, fmt.Errorf("reading the entry of run %s: %w", entry.RunID, err)
	}
	spec, err = w.conn.Body(ctx, entry.RunID, info.RunSpec)
	if err != nil {
		return o, nil, err
	}
	if err := json.Unmarshal(spec, &o); err != nil {
		return o, nil, fmt.Errorf("reading the offer of run %s: %w", entry.RunID, err)
	}
	return o, spec, nil
}

// matches returns an error if the offered configuration makes a different run on this
// machine, for example because task files differ.
func (o offer) matches(cfg pipeline.Config, tasks []schemas.Task) error {
	var diff []string
	for _, name := range slices.Sorted(maps.Keys(o.Identity)) {
		if cfg.Identity[name] != o.Identity[name] {
			diff = append(diff, name)
		}
	}
	if tasksHash(tasks) != o.Tasks {
		diff = append(diff, "tasks")
	}
	if len(diff) == 0 {
		return nil
	}
	return &pipeline.StopError{Code: 2, Err: fmt.Errorf("run %s is a different run on this machine: %s differ", o.RunID, strings.Join(diff, ", ")),
		Remedy: "give this machine the coordinator's task files, templates and recordings, under the same paths"}
}
