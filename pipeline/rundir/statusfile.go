package rundir

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
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

// statusContent is the content of status.json.
type statusContent struct {
	Schema   string    `json:"schema"`
	RunID    string    `json:"run_id"`
	Process  string    `json:"process"`
	At       time.Time `json:"at"`
	Phase    string    `json:"phase"`
	Selected int       `json:"selected"`
	Reused   int       `json:"reused"`
	Before   int       `json:"staged_before"` // staged objects of the run when this process started, reused or not
	Slots    int       `json:"slots"`
	Done     int       `json:"done"`    // by this process
	Failed   int       `json:"failed"`  // given up by this process
	Earlier  int       `json:"earlier"` // given up by an earlier process and not retried
	Running  []string  `json:"running"` // episode IDs
}

// Counts are the numbers with which a run starts.
type Counts struct {
	Selected, Reused int // jobs
	Staged           int // objects of the run in staging, reused or not
	Slots            int
}

// StatusFile is an observer that writes status.json of a run that executes in one process, so
// that other processes can read the state of the run even after this process is gone.
type StatusFile struct {
	observe.Observer // also receives all events
	path             string
	log              *slog.Logger

	mu      sync.Mutex
	now     statusContent
	running map[string]bool
	ended   map[string]bool // by episode ID: whether the episode was staged
	failing bool            // a write failed, which was logged
}

// NewStatusFile returns the status file of a run. The first event writes the file. All events are
// passed on to next.
func NewStatusFile(d *Dir, start Counts, next observe.Observer, log *slog.Logger) *StatusFile {
	host, _ := os.Hostname()
	return &StatusFile{
		Observer: next, path: filepath.Join(d.Path, statusFile), log: log, running: map[string]bool{}, ended: map[string]bool{},
		now: statusContent{
			Schema: "tracesmith.standing/1", RunID: d.Info.RunID, Process: fmt.Sprintf("pid %d on %s, in %s", os.Getpid(), host, d.Path),
			Phase: string(engine.Working), Selected: start.Selected, Reused: start.Reused, Before: start.Staged, Slots: start.Slots,
		},
	}
}

// change applies a change and replaces the file.
func (f *StatusFile) change(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do()
	f.now.At, f.now.Running = time.Now().UTC(), slices.Sorted(maps.Keys(f.running))
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
	f.Observer.RunStarted(s)
}

// JobStarted implements observe.Observer.
func (f *StatusFile) JobStarted(j schemas.Job, delivery int) {
	f.change(func() { f.running[j.EpisodeID] = true })
	f.Observer.JobStarted(j, delivery)
}

// JobRetried implements observe.Observer.
func (f *StatusFile) JobRetried(j schemas.Job, cause error) {
	f.change(func() { delete(f.running, j.EpisodeID) })
	f.Observer.JobRetried(j, cause)
}

// JobFinished implements observe.Observer.
func (f *StatusFile) JobFinished(j schemas.Job, e observe.Episode) {
	f.change(func() {
		delete(f.running, j.EpisodeID)
		if e.Outcome != schemas.OutcomeCancelled { // canceled jobs can be resumed
			f.countEnd(j.EpisodeID, e.Outcome != schemas.OutcomeInfra)
		}
	})
	f.Observer.JobFinished(j, e)
}

// countEnd counts an ended episode. If its job ends again, the last result counts.
func (f *StatusFile) countEnd(id string, staged bool) {
	if wasStaged, ok := f.ended[id]; ok {
		*f.counter(wasStaged)--
	}
	f.ended[id] = staged
	*f.counter(staged)++
}

func (f *StatusFile) counter(staged bool) *int {
	if staged {
		return &f.now.Done
	}
	return &f.now.Failed
}

// SetEarlier sets the number of jobs that an earlier process gave up and that are not retried.
func (f *StatusFile) SetEarlier(n int) { f.change(func() { f.now.Earlier = n }) }

// Close writes the final state of the run. dead lists the episodes whose jobs are given up,
// including those that an earlier process gave up.
func (f *StatusFile) Close(complete bool, dead []string) {
	f.change(func() {
		clear(f.running)
		if f.now.Phase = string(engine.Stopped); complete {
			f.now.Phase = string(engine.Completed)
		}
		deadNow := 0
		for _, id := range dead {
			if staged, ok := f.ended[id]; ok && !staged {
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
		if alive || now.Phase != string(engine.Working) {
			return now.status(), nil
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
		now.Phase, now.Running = Killed, nil
		now.Done = min(max(now.Done, staged-now.Before), now.Selected-now.Reused-now.Failed-now.Earlier)
		return now.status(), nil
	}
}

func (n statusContent) status() observe.Status {
	s := observe.Status{
		RunID: n.RunID, Phase: n.Phase, Coordinator: n.Process, SilentSeconds: max(0, time.Since(n.At).Seconds()),
		Selected: n.Selected, Reused: n.Reused, Ran: n.Done + n.Failed, Running: len(n.Running), Done: n.Reused + n.Done, Failed: n.Failed + n.Earlier,
		Workers: []observe.WorkerStatus{},
	}
	s.Missing = s.Selected - s.Reused - s.Ran
	s.Waiting = s.Selected - s.Running - s.Done - s.Failed
	return s
}
