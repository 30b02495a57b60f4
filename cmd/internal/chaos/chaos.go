package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tracesmith/tracesmith/sinks"
)

// Config configures one trial. All fields except Progress and OnForcedExit are required.
type Config struct {
	Dir      string // an empty directory
	Episodes int    // 2 to MaxEpisodes
	Faults   int    // number of faults
	Seed     uint64
	Kinds    []Kind
	Workers  int           // episodes at once
	Fleet    int           // worker processes on a cluster of three nodes; 0: a run in one process
	Store    string        // S3 location to stage and publish below, which is empty; "": directories below Dir
	Endpoint string        // URL of the S3 server of Store
	Sandbox  string        // kind of sandbox
	Within   time.Duration // bound on the time from a restart to the first model call

	// Child returns the program as a command with these arguments. Run does so for the
	// commands run and worker; it also sets the file with the plan of store faults and
	// the offset of the clock.
	Child func(ctx context.Context, args ...string) *exec.Cmd
	Run   func(ctx context.Context, storePlan string, clock time.Duration, args ...string) *exec.Cmd
	// Read returns the episodes of a run directory or a dataset, and a function that must
	// be called afterwards.
	Read func(ctx context.Context, place string) (iter.Seq2[sinks.Trajectory, error], func() error, error)
	// Open opens the store of a dataset, or the staging of a run directory.
	Open func(ctx context.Context, place string) (sinks.Store, error)
	// Guest is the first argument by which guest processes are recognized.
	Guest    string
	Progress io.Writer // nil: silent
	// OnForcedExit, if not nil, is called with a function that must be called if the
	// program exits without waiting for Run.
	OnForcedExit func(func() error)
}

// Run runs the trial and reports what it found. The error is a failure of the trial itself
// or the cause of ctx; it is a *RefusedError if the trial could not begin. After an error, no
// process of the trial is left.
func Run(ctx context.Context, cfg Config) (_ Report, err error) {
	if cfg.Progress == nil {
		cfg.Progress = io.Discard
	}
	start := time.Now()
	if cfg.Fleet > 0 {
		cfg.Workers = slots * cfg.Fleet
	}
	t := &trial{cfg: cfg, report: Report{
		Schema: "tracesmith.chaos/1", Seed: cfg.Seed, Sandbox: cfg.Sandbox, Episodes: cfg.Episodes, Workers: cfg.Workers, Fleet: cfg.Fleet, Store: cfg.Store, Dir: cfg.Dir,
		Breaches: []Breach{}, LeftOut: []LeftOut{}, struck: map[Kind]int{},
	}}
	kinds := slices.Clone(cfg.Kinds)
	leaveOut := func(k Kind, why string) {
		if i := slices.Index(kinds, k); i >= 0 {
			kinds = slices.Delete(kinds, i, i+1)
			t.report.LeftOut = append(t.report.LeftOut, LeftOut{k, why})
		}
	}
	if cfg.Sandbox != "bubblewrap" && cfg.Sandbox != "local" {
		leaveOut(Guest, "the guests of sandbox "+cfg.Sandbox+" are not children of the run")
	}
	if _, err := exec.LookPath("docker"); err != nil {
		leaveOut(Container, err.Error())
	}
	if slices.Contains(kinds, Disk) {
		if t.disk, err = mountDisk(filepath.Join(cfg.Dir, "disk")); err != nil {
			leaveOut(Disk, err.Error())
		}
	}
	if len(kinds) == 0 {
		return t.report, errors.Join(noFaultsError(t.report.LeftOut), t.disk.close())
	}
	if t.run = filepath.Join(cfg.Dir, "run"); t.disk != nil {
		t.run = filepath.Join(t.disk.dir, "run")
	}
	if cfg.OnForcedExit != nil {
		cfg.OnForcedExit(t.disk.close)
	}
	t.plan = newPlan(cfg.Seed, kinds, cfg.Faults, cfg.Episodes)
	err = t.execute(ctx)
	if t.disk != nil {
		err = errors.Join(err, t.copyFromDisk(), t.disk.close())
	}
	for _, k := range kinds {
		t.report.Faults = append(t.report.Faults, FaultCount{k, t.plan.count[k], t.report.struck[k]})
		if n := t.report.struck[k]; err == nil && n < t.plan.count[k] {
			t.breach("unstruck", "%d of %d faults of kind %s found nothing to strike", t.plan.count[k]-n, t.plan.count[k], k)
		}
	}
	t.report.Wall = time.Since(start).Seconds()
	return t.report, err
}

// execute runs the batch and checks the result.
func (t *trial) execute(ctx context.Context) (err error) {
	if err = t.startProxy(ctx); err != nil {
		return err
	}
	if t.proxy != nil {
		defer t.proxy.close()
	}
	if t.cfg.Fleet > 0 {
		err = t.runFleet(ctx)
	} else {
		err = t.runSingle(ctx)
	}
	if err != nil {
		_, waitErr := t.awaitProcesses()
		return errors.Join(err, waitErr)
	}
	if err = t.check(ctx); err != nil && ctx.Err() == nil && len(t.report.Breaches) > 0 { // the breaches explain the error
		t.breach("unchecked", "%v", err)
		err = nil
	}
	return err
}

// copyFromDisk copies the run directory from its disk to Dir, for inspection.
func (t *trial) copyFromDisk() error {
	if _, err := os.Stat(t.run); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return os.CopyFS(filepath.Join(t.cfg.Dir, "run"), os.DirFS(t.run))
}

// noFaultsError returns the error of a trial whose faults are all left out.
func noFaultsError(out []LeftOut) error {
	var reasons []string
	for _, l := range out {
		reasons = append(reasons, string(l.Kind)+": "+l.Why)
	}
	return &RefusedError{Code: 2, Err: fmt.Errorf("none of these faults can be injected here: %s", strings.Join(reasons, "; ")), Try: "other --kinds"}
}

// Report is the result of a trial.
type Report struct {
	Schema   string       `json:"schema"`
	Seed     uint64       `json:"seed"`
	Sandbox  string       `json:"sandbox"`
	Episodes int          `json:"episodes"`
	Workers  int          `json:"workers"`         // episodes at once
	Fleet    int          `json:"fleet,omitempty"` // worker processes on a cluster
	Store    string       `json:"store,omitempty"` // Config.Store
	Wall     float64      `json:"wall_s"`
	Dir      string       `json:"dir"`
	Faults   []FaultCount `json:"faults"`
	LeftOut  []LeftOut    `json:"left_out"`
	Starts   int          `json:"starts"` // number of processes of the run
	Ends     []string     `json:"ends"`   // how each process ended
	Server   Server       `json:"server"`
	Calls    Calls        `json:"calls"`
	Resume   Resume       `json:"resume"`
	Sets     Sets         `json:"sets"`
	// Redeliveries counts the repeated deliveries of a fleet's jobs that were observed.
	Redeliveries int      `json:"redeliveries"`
	Breaches     []Breach `json:"breaches"`

	struck map[Kind]int
}

// FaultCount counts the planned and the injected faults of one kind.
type FaultCount struct {
	Kind    Kind `json:"kind"`
	Planned int  `json:"planned"`
	Struck  int  `json:"struck"`
}

// LeftOut is a kind of fault that cannot be injected here.
type LeftOut struct {
	Kind Kind   `json:"kind"`
	Why  string `json:"why"`
}

// Breach is a promise of tracesmith that did not hold.
type Breach struct {
	Name   string `json:"name"`
	Detail string `json:"detail"`
}

// Server counts the requests to the model server.
type Server struct {
	Requests int `json:"requests"` // all that arrived
	Answered int `json:"answered"` // complete answers
	Again    int `json:"again"`    // complete answers to turns that already had a complete answer
}

// Calls counts the model calls that the run reports.
type Calls struct {
	Made     int `json:"made"`
	Answered int `json:"answered"`
	Failed   int `json:"failed"`
	Lost     int `json:"lost_in_flight"` // their process ended before the answer
}

// Resume describes the times in milliseconds from a restart of the run to its first model
// call. They include the replay of an episode's steps.
type Resume struct {
	N      int     `json:"n"`
	Median float64 `json:"median_ms"`
	Max    float64 `json:"max_ms"`
	Within float64 `json:"within_ms"`
}

// Sets counts the episodes that were planned, staged and published.
type Sets struct {
	Expected  int `json:"expected"`
	Staged    int `json:"staged"`
	Published int `json:"published"`
}

// trial is the execution of a Config.
type trial struct {
	cfg           Config
	plan          plan
	run           string // the run directory
	disk          *disk
	report        Report
	server        *server
	single        *singleProcess // nil for a fleet
	proxy         *proxy         // in front of the S3 server; nil without an S3 server
	pids          []int          // of the run's processes
	faultInjector                // single or the fleet

	mu sync.Mutex // guards report.Breaches
}

// startProxy starts a proxy in front of the S3 server, if the trial uses one.
func (t *trial) startProxy(ctx context.Context) (err error) {
	if t.cfg.Endpoint == "" {
		return nil
	}
	if err := checkReachable(ctx, t.cfg.Endpoint); err != nil {
		return err
	}
	t.proxy, err = newProxy(t.cfg.Endpoint, t.plan.store, func(client string) (bool, error) {
		return t.strike(processFault{Kind: StoreTorn}, client)
	})
	return err
}

// dataset returns the location to which the batch is published.
func (t *trial) dataset() string {
	if t.cfg.Store != "" {
		return t.cfg.Store + "/dataset"
	}
	return filepath.Join(t.cfg.Dir, "dataset")
}

// breach reports a breach.
func (t *trial) breach(name, format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.report.Breaches = append(t.report.Breaches, Breach{name, fmt.Sprintf(format, args...)})
}
