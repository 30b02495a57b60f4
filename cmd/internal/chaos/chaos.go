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
	Episodes int    // 2 to MostEpisodes
	Faults   int
	Seed     uint64
	Kinds    []Kind
	Workers  int
	Fleet    int           // worker processes on a cluster of three nodes; 0: a run in one process
	Store    string        // a new place to stage and publish below; "": directories
	Endpoint string        // of an S3 server that holds Store
	Sandbox  string        // kind of sandbox
	Within   time.Duration // bound on the first new call after a restart

	// Child returns a command of the program with the arguments of a user. Run does so
	// for run and worker, with the plan of store faults and the offset of the clock.
	Child func(ctx context.Context, args ...string) *exec.Cmd
	Run   func(ctx context.Context, storePlan string, clock time.Duration, args ...string) *exec.Cmd
	// Read yields the episodes of a run directory or a dataset.
	Read func(ctx context.Context, place string) (iter.Seq2[sinks.Trajectory, error], func() error, error)
	// Open opens the store of a dataset, or the staging of a run directory.
	Open func(ctx context.Context, place string) (sinks.Store, error)
	// Guest is the first argument of a guest process, by which it is recognized.
	Guest    string
	Progress io.Writer // nil: silent
	// OnForcedExit, if not nil, receives a function to call if the program exits
	// without waiting for Run.
	OnForcedExit func(func() error)
}

// Run runs the trial and reports what it found. An error is a failure of the trial
// itself, or of ctx; it is a RefusedError if the trial could not begin. After an error,
// no process of the trial is left.
func Run(ctx context.Context, cfg Config) (_ Report, err error) {
	if cfg.Progress == nil {
		cfg.Progress = io.Discard
	}
	began := time.Now()
	if cfg.Fleet > 0 {
		cfg.Workers = slots * cfg.Fleet
	}
	t := &trial{cfg: cfg, report: Report{
		Schema: "tracesmith.chaos/1", Seed: cfg.Seed, Sandbox: cfg.Sandbox, Episodes: cfg.Episodes, Workers: cfg.Workers, Fleet: cfg.Fleet, Store: cfg.Store, Dir: cfg.Dir,
		Breaches: []Breach{}, LeftOut: []LeftOut{}, struck: map[Kind]int{},
	}}
	kinds := slices.Clone(cfg.Kinds)
	leave := func(k Kind, why string) {
		if i := slices.Index(kinds, k); i >= 0 {
			kinds = slices.Delete(kinds, i, i+1)
			t.report.LeftOut = append(t.report.LeftOut, LeftOut{k, why})
		}
	}
	if cfg.Sandbox != "bubblewrap" && cfg.Sandbox != "local" {
		leave(Guest, "the guests of sandbox "+cfg.Sandbox+" are not children of the run")
	}
	if _, err := exec.LookPath("docker"); err != nil {
		leave(Container, err.Error())
	}
	if slices.Contains(kinds, Disk) {
		if t.disk, err = mountDisk(filepath.Join(cfg.Dir, "disk")); err != nil {
			leave(Disk, err.Error())
		}
	}
	if len(kinds) == 0 {
		return t.report, errors.Join(noneLeft(t.report.LeftOut), t.disk.close())
	}
	if t.run = filepath.Join(cfg.Dir, "run"); t.disk != nil {
		t.run = filepath.Join(t.disk.dir, "run")
	}
	if cfg.OnForcedExit != nil {
		cfg.OnForcedExit(t.disk.close)
	}
	t.plan = newPlan(cfg.Seed, kinds, cfg.Faults, cfg.Episodes)
	err = t.execute(ctx)
	if t.disk != nil { // keep its files for inspection
		err = errors.Join(err, t.keep(), t.disk.close())
	}
	for _, k := range kinds {
		t.report.Faults = append(t.report.Faults, Struck{k, t.plan.count[k], t.report.struck[k]})
		if n := t.report.struck[k]; err == nil && n < t.plan.count[k] {
			t.breach("unstruck", "%d of %d faults of kind %s found nothing to strike", t.plan.count[k]-n, t.plan.count[k], k)
		}
	}
	t.report.Wall = time.Since(began).Seconds()
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
		err = t.playFleet(ctx)
	} else {
		err = t.play(ctx)
	}
	if err != nil {
		_, unseen := t.still()
		return errors.Join(err, unseen)
	}
	if err = t.check(ctx); err != nil && ctx.Err() == nil && len(t.report.Breaches) > 0 { // which explain it
		t.breach("unchecked", "%v", err)
		err = nil
	}
	return err
}

// keep copies the run's directory from its disk.
func (t *trial) keep() error {
	if _, err := os.Stat(t.run); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return os.CopyFS(filepath.Join(t.cfg.Dir, "run"), os.DirFS(t.run))
}

// noneLeft refuses a trial without faults.
func noneLeft(out []LeftOut) error {
	var why []string
	for _, l := range out {
		why = append(why, string(l.Kind)+": "+l.Why)
	}
	return &RefusedError{Code: 2, Err: fmt.Errorf("none of these faults can be injected here: %s", strings.Join(why, "; ")), Try: "other --kinds"}
}

// Report is what a trial found.
type Report struct {
	Schema   string    `json:"schema"`
	Seed     uint64    `json:"seed"`
	Sandbox  string    `json:"sandbox"`
	Episodes int       `json:"episodes"`
	Workers  int       `json:"workers"`         // episodes at once
	Fleet    int       `json:"fleet,omitempty"` // worker processes on a cluster
	Store    string    `json:"store,omitempty"` // where it staged and published, if not in its directory
	Wall     float64   `json:"wall_s"`
	Dir      string    `json:"dir"`
	Faults   []Struck  `json:"faults"`
	LeftOut  []LeftOut `json:"left_out"`
	Starts   int       `json:"starts"` // processes of the run
	Ends     []string  `json:"ends"`   // how each ended
	Server   Server    `json:"server"`
	Calls    Calls     `json:"calls"`
	Resume   Resume    `json:"resume"`
	Sets     Sets      `json:"sets"`
	// HandedAgain counts the repeated deliveries of a fleet's jobs that were observed.
	HandedAgain int      `json:"handed_again"`
	Breaches    []Breach `json:"breaches"`

	struck map[Kind]int
}

// Struck counts one kind of fault.
type Struck struct {
	Kind    Kind `json:"kind"`
	Planned int  `json:"planned"`
	Struck  int  `json:"struck"`
}

// LeftOut is a kind of fault that cannot be injected here.
type LeftOut struct {
	Kind Kind   `json:"kind"`
	Why  string `json:"why"`
}

// Breach is a promise that did not hold.
type Breach struct {
	Name   string `json:"name"`
	Detail string `json:"detail"`
}

// Server is the account of the model server.
type Server struct {
	Requests int `json:"requests"` // that arrived
	Answered int `json:"answered"` // completely
	Again    int `json:"again"`    // complete answers to turns that had one already
}

// Calls is the account of the run.
type Calls struct {
	Made     int `json:"made"`
	Answered int `json:"answered"`
	Failed   int `json:"failed"`
	Lost     int `json:"lost_in_flight"`
}

// Resume is the time in milliseconds from a start of the run to its first model call,
// which follows the replay of an episode's steps.
type Resume struct {
	N      int     `json:"n"`
	Median float64 `json:"median_ms"`
	Max    float64 `json:"max_ms"`
	Within float64 `json:"within_ms"`
}

// Sets counts the episodes in each place.
type Sets struct {
	Expected  int `json:"expected"`
	Staged    int `json:"staged"`
	Published int `json:"published"`
}

// trial is a Config in execution.
type trial struct {
	cfg    Config
	plan   plan
	run    string // the run directory
	disk   *disk
	report Report
	server *server
	lone   *singleProcess // nil in a fleet
	processFaults
	proxy *proxy // in front of the store; nil if that is a directory
	pids  []int  // of the run's processes

	breaches sync.Mutex
}

// startProxy puts a proxy in front of the store, if it is a server.
func (t *trial) startProxy(ctx context.Context) (err error) {
	if t.cfg.Endpoint == "" {
		return nil
	}
	if err := reach(ctx, t.cfg.Endpoint); err != nil {
		return err
	}
	t.proxy, err = newProxy(t.cfg.Endpoint, t.plan.store, func(asker string) (bool, error) {
		return t.strike(planned{Kind: StoreTorn}, asker)
	})
	return err
}

// dataset returns the place to publish the batch.
func (t *trial) dataset() string {
	if t.cfg.Store != "" {
		return t.cfg.Store + "/dataset"
	}
	return filepath.Join(t.cfg.Dir, "dataset")
}

func (t *trial) breach(name, format string, args ...any) {
	t.breaches.Lock()
	defer t.breaches.Unlock()
	t.report.Breaches = append(t.report.Breaches, Breach{name, fmt.Sprintf(format, args...)})
}
