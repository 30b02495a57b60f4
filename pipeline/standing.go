package pipeline

// How a run without a cluster stands, in a file of its directory that is replaced
// whenever that changes: whoever looks needs nothing of the process, which may be
// gone.

import (
	"context"
	"encoding/json"
	"fmt"
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

const standingFile = "status.json"

// Killed is the phase of a run whose process died without a word.
const Killed = "killed"

// standing is the content of status.json.
type standing struct {
	Schema   string    `json:"schema"`
	RunID    string    `json:"run_id"`
	Process  string    `json:"process"`
	At       time.Time `json:"at"`
	Phase    string    `json:"phase"`
	Selected int       `json:"selected"`
	Reused   int       `json:"reused"`
	Before   int       `json:"staged_before"` // objects of the run that were staged when it began, reused or not
	Slots    int       `json:"slots"`
	Done     int       `json:"done"`    // now
	Failed   int       `json:"failed"`  // given up now
	Earlier  int       `json:"earlier"` // given up by an earlier process, and not asked for again
	Running  []string  `json:"running"` // episodes
}

// bulletin keeps status.json, and passes on what it is told.
type bulletin struct {
	observe.Observer
	path string
	warn func(error)

	mu      sync.Mutex
	now     standing
	running map[string]bool
	ended   map[string]bool // true: staged
	failing bool            // the file can't be written, and that was said
}

func (r *run) post() *bulletin {
	host, _ := os.Hostname()
	return &bulletin{
		Observer: r.deps.Observer, path: filepath.Join(r.cfg.RunDir, standingFile), running: map[string]bool{}, ended: map[string]bool{},
		warn: func(err error) { r.deps.Log.Warn("writing the status", "error", err) },
		now: standing{
			Schema: "tracesmith.standing/1", RunID: r.info.RunID, Process: fmt.Sprintf("pid %d on %s, in %s", os.Getpid(), host, r.cfg.RunDir),
			Phase: string(engine.Working), Selected: len(r.plan.jobs), Reused: len(r.episodes), Before: r.before, Slots: r.cfg.Workers,
		},
	}
}

// change makes a change and replaces the file.
func (b *bulletin) change(do func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	do()
	b.now.At, b.now.Running = time.Now().UTC(), slices.Sorted(maps.Keys(b.running))
	b.now.Done, b.now.Failed = 0, 0
	for _, staged := range b.ended {
		if staged {
			b.now.Done++
		} else {
			b.now.Failed++
		}
	}
	body, err := json.Marshal(b.now)
	if err == nil { // not synced: it tells of the moment
		err = os.WriteFile(b.path+".tmp", body, 0o600)
	}
	if err == nil {
		err = os.Rename(b.path+".tmp", b.path)
	}
	if err != nil && !b.failing {
		b.failing = true
		b.warn(err)
	}
}

func (b *bulletin) RunStarted(s observe.Start) {
	b.change(func() {})
	b.Observer.RunStarted(s)
}

func (b *bulletin) JobStarted(j schemas.Job, delivery int) {
	b.change(func() { b.running[j.EpisodeID] = true })
	b.Observer.JobStarted(j, delivery)
}

func (b *bulletin) JobRetried(j schemas.Job, cause error) {
	b.change(func() { delete(b.running, j.EpisodeID) })
	b.Observer.JobRetried(j, cause)
}

func (b *bulletin) JobFinished(j schemas.Job, e observe.Episode) {
	b.change(func() {
		delete(b.running, j.EpisodeID)
		if e.Outcome != schemas.OutcomeCancelled { // which is given back
			b.ended[j.EpisodeID] = e.Outcome != schemas.OutcomeInfra
		}
	})
	b.Observer.JobFinished(j, e)
}

// earlier says how many jobs an earlier process has given up.
func (b *bulletin) earlier(n int) { b.change(func() { b.now.Earlier = n }) }

// close posts the end; dead are the jobs that were given up, by whomever.
func (b *bulletin) close(verdict string, dead map[string]engine.Entry) {
	b.change(func() {
		clear(b.running)
		if b.now.Phase = string(engine.Stopped); verdict == observe.Complete {
			b.now.Phase = string(engine.Completed)
		}
		known := 0
		for id := range dead {
			if staged, ok := b.ended[id]; ok && !staged {
				known++
			}
		}
		b.now.Earlier = len(dead) - known
	})
}

// ReadStanding reads how the run of a directory stands. The error is fs.ErrNotExist
// where no process has run it without a cluster. The figures of a living process
// are those of one moment; of one that was killed, what it had staged counts.
func ReadStanding(ctx context.Context, dir string, staging sinks.Store) (observe.Status, error) {
	path := filepath.Join(dir, standingFile)
	for {
		alive, err := engine.Locked(dir)
		if err != nil {
			return observe.Status{}, err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return observe.Status{}, fmt.Errorf("reading the status: %w", err)
		}
		var now standing
		if err := json.Unmarshal(raw, &now); err != nil || now.RunID == "" {
			return observe.Status{}, &StopError{Code: 2, Err: fmt.Errorf("%s is not the status of a run: a crash may have cut it", path), Remedy: "start the run again: it resumes, and writes the file anew"}
		}
		if alive || now.Phase != string(engine.Working) {
			return now.status(), nil
		}
		staged := 0
		for _, err := range staging.List(ctx, stagedBy(now.RunID)) {
			if err != nil {
				return observe.Status{}, fmt.Errorf("listing staged episodes: %w", err)
			}
			staged++
		}
		if again, err := engine.Locked(dir); err != nil || again {
			if err != nil {
				return observe.Status{}, err
			}
			continue // another process began meanwhile
		}
		now.Phase, now.Running = Killed, nil
		now.Done = min(max(now.Done, staged-now.Before), now.Selected-now.Reused-now.Failed-now.Earlier)
		return now.status(), nil
	}
}

func (n standing) status() observe.Status {
	s := observe.Status{
		RunID: n.RunID, Phase: n.Phase, Coordinator: n.Process, Silent: max(0, time.Since(n.At).Seconds()),
		Selected: n.Selected, Reused: n.Reused, Ran: n.Done + n.Failed, Running: len(n.Running), Done: n.Reused + n.Done, Failed: n.Failed + n.Earlier, Workers: []observe.WorkerStatus{},
	}
	s.Missing = s.Selected - s.Reused - s.Ran
	s.Waiting = s.Selected - s.Running - s.Done - s.Failed
	return s
}
