package rundir

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/tracesmith/tracesmith/pipeline/engine"
	"github.com/tracesmith/tracesmith/pipeline/observe"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

const statusFile = "status.json"

// Killed is the phase of a run whose process died before it could write another phase.
const Killed = "killed"

// heartbeat is the interval at which the file is renewed.
const heartbeat = 2 * time.Second

// statusContent is the content of status.json.
type statusContent struct {
	Schema   string    `json:"schema"`
	RunID    string    `json:"run_id"`
	PID      int       `json:"pid"`
	Host     string    `json:"host"`
	Dir      string    `json:"run_dir"`
	At       time.Time `json:"at"`
	Phase    string    `json:"phase"`
	Selected int       `json:"selected"`
	Reused   int       `json:"reused"`
	Before   int       `json:"staged_before"` // staged objects of the run when this process started, reused or not
	Slots    int       `json:"slots"`
	Done     int       `json:"done"`    // by this process
	Failed   int       `json:"failed"`  // given up by this process
	Earlier  int       `json:"earlier"` // given up by an earlier process and not retried

	Outcomes    map[string]int   `json:"outcomes"`
	CostUSD     float64          `json:"cost_usd"`
	CallTimeout float64          `json:"call_timeout_s"`
	Activity    observe.Activity `json:"activity"`
}

// Begin describes a run when its process starts.
type Begin struct {
	Selected, Reused int // jobs
	Staged           int // objects of the run in staging, reused or not
	Slots            int
	Outcomes         map[string]int // of the reused episodes
	CallTimeout      time.Duration  // time limit of a model call; 0: unknown
	Activities       *observe.Activities
	Spent            func() float64 // price of all answered model calls, in USD
}

// StatusFile is an observer that writes status.json of a run that executes in one process, so
// that other processes can read the state of the run even after this process is gone.
type StatusFile struct {
	observe.Observer // also receives all events
	path             string
	log              *slog.Logger
	begin            Begin

	mu      sync.Mutex
	now     statusContent
	ended   map[string]string // outcomes by episode ID
	failing bool              // a write failed, which was logged

	quit  chan struct{} // ends the heartbeat; nil: there is none
	beats sync.WaitGroup
}

// NewStatusFile returns the status file of a run. The first event writes the file, and RunStarted
// begins to renew it until Close is called. All events are passed on to next.
func NewStatusFile(d *Dir, begin Begin, next observe.Observer, log *slog.Logger) *StatusFile {
	host, _ := os.Hostname()
	f := &StatusFile{
		Observer: next, path: filepath.Join(d.Path, statusFile), log: log, begin: begin, ended: map[string]string{},
		now: statusContent{
			Schema: "tracesmith.standing/2", RunID: d.Info.RunID, PID: os.Getpid(), Host: host, Dir: d.Path, Phase: string(engine.Working),
			Selected: begin.Selected, Reused: begin.Reused, Before: begin.Staged, Slots: begin.Slots,
			Outcomes: maps.Clone(begin.Outcomes), CallTimeout: begin.CallTimeout.Seconds(),
		},
	}
	if f.now.Outcomes == nil {
		f.now.Outcomes = map[string]int{}
	}
	return f
}

// change applies a change and replaces the file.
func (f *StatusFile) change(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now.Activity = f.begin.Activities.Now()
	switch a := f.now.Activity; {
	case a.Canceled:
		f.now.Phase = string(engine.Stopping)
	case a.Stopping:
		f.now.Phase = string(engine.Draining)
	}
	do()
	f.now.At, f.now.CostUSD = time.Now().UTC(), f.begin.Spent()
	body, err := json.Marshal(f.now)
	if err == nil { // not synced: after a power cut its content would be obsolete anyway
		err = os.WriteFile(f.path+".tmp", body, 0o600)
	}
	if err == nil {
		err = os.Rename(f.path+".tmp", f.path)
	}
	if err != nil && !f.failing {
		f.failing = true
		f.log.Warn("writing the status file", "error", err)
	}
}

// RunStarted implements observe.Observer.
func (f *StatusFile) RunStarted(s observe.Start) {
	f.change(func() {})
	f.quit = make(chan struct{})
	f.beats.Go(func() {
		tick := time.NewTicker(heartbeat)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				f.change(func() {})
			case <-f.quit:
				return
			}
		}
	})
	f.Observer.RunStarted(s)
}

// JobStarted implements observe.Observer.
func (f *StatusFile) JobStarted(j schemas.Job, delivery int) {
	f.change(func() {})
	f.Observer.JobStarted(j, delivery)
}

// JobRetried implements observe.Observer.
func (f *StatusFile) JobRetried(j schemas.Job, cause error) {
	f.change(func() {})
	f.Observer.JobRetried(j, cause)
}

// JobFinished implements observe.Observer.
func (f *StatusFile) JobFinished(j schemas.Job, e observe.Episode) {
	f.change(func() {
		if e.Outcome != schemas.OutcomeCancelled { // canceled jobs can be resumed
			f.countEnd(j.EpisodeID, e.Outcome)
		}
	})
	f.Observer.JobFinished(j, e)
}

// countEnd counts an ended episode. If its job ends again, the last result counts.
func (f *StatusFile) countEnd(id, outcome string) {
	if last, ok := f.ended[id]; ok {
		f.count(last, -1)
	}
	f.ended[id] = outcome
	f.count(outcome, 1)
}

func (f *StatusFile) count(outcome string, n int) {
	f.now.Outcomes[outcome] += n
	if outcome == schemas.OutcomeInfra {
		f.now.Failed += n
	} else {
		f.now.Done += n
	}
}

// SetEarlier sets the number of jobs that an earlier process gave up and that are not retried.
func (f *StatusFile) SetEarlier(n int) { f.change(func() { f.now.Earlier = n }) }

// Close writes the final state of the run. dead lists the episodes whose jobs are given up,
// including those that an earlier process gave up.
func (f *StatusFile) Close(complete bool, dead []string) {
	if f.quit != nil {
		close(f.quit)
		f.beats.Wait()
		f.quit = nil
	}
	f.change(func() {
		f.now.Activity = observe.Activity{}
		if f.now.Phase = string(engine.Stopped); complete {
			f.now.Phase = string(engine.Completed)
		}
		deadNow := 0
		for _, id := range dead {
			if f.ended[id] == schemas.OutcomeInfra {
				deadNow++
			}
		}
		f.now.Earlier = len(dead) - deadNow
	})
}

// ReadStatus reads the status of a run that executes, or executed, in one process. The error wraps
// fs.ErrNotExist if the run was never executed without a cluster. If the process of the run was
// killed, ReadStatus counts the staged episodes.
func ReadStatus(ctx context.Context, dir string, staging sinks.Store) (observe.Status, error) {
	path := filepath.Join(dir, statusFile)
	for {
		alive, err := engine.Locked(dir)
		if err != nil {
			return observe.Status{}, err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return observe.Status{}, fmt.Errorf("reading the status: %w", err)
		}
		var now statusContent
		if err := json.Unmarshal(raw, &now); err != nil || now.RunID == "" {
			return observe.Status{}, &Error{Err: fmt.Errorf("%s is not the status of a run: a crash may have truncated it", path), Remedy: "start the run again: it resumes and writes a new file"}
		}
		if s := now.status(); alive || !s.Live() {
			return s, nil
		}
		staged := 0
		for _, err := range staging.List(ctx, StagedPrefix(now.RunID)) {
			if err != nil {
				return observe.Status{}, fmt.Errorf("listing staged episodes: %w", err)
			}
			staged++
		}
		if alive, err := engine.Locked(dir); err != nil || alive {
			if err != nil {
				return observe.Status{}, err
			}
			continue // another process has started in the meantime
		}
		now.Phase, now.Activity = Killed, observe.Activity{}
		now.Done = min(max(now.Done, staged-now.Before), now.Selected-now.Reused-now.Failed-now.Earlier)
		return now.status(), nil
	}
}

func (n statusContent) status() observe.Status {
	at := time.Now()
	s := observe.Status{
		RunID: n.RunID, Phase: n.Phase, PID: n.PID, Host: n.Host, RunDir: n.Dir, SilentSeconds: max(0, at.Sub(n.At).Seconds()),
		Selected: n.Selected, Reused: n.Reused, Ran: n.Done + n.Failed, Running: len(n.Activity.Running), Done: n.Reused + n.Done, Failed: n.Failed + n.Earlier,
		Outcomes: n.Outcomes, CostUSD: &n.CostUSD, Workers: []observe.WorkerStatus{},
		CallTimeoutSeconds: n.CallTimeout,
	}
	s.SetActivity(n.Activity, at)
	if s.Live() {
		w := observe.WorkerStatus{Name: observe.LocalWorker, Host: n.Host, State: n.Phase, Slots: n.Slots, Running: []string{}, SilentSeconds: s.SilentSeconds}
		for _, r := range n.Activity.Running {
			w.Running = append(w.Running, r.EpisodeID)
		}
		s.Workers = append(s.Workers, w)
	}
	s.Missing = n.Earlier
	s.Waiting = s.Selected - s.Running - s.Done - s.Failed
	return s
}
