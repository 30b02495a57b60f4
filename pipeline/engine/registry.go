package engine

// The registry of a cluster lists its workers and its runs. The entry of a run is also the
// lease of its coordinator. The state of jobs is not here, but in their records.

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Protocol is the version of the protocol between coordinators and workers.
const Protocol = 2

const (
	runsBucket    = "TRACESMITH_RUNS"
	workersBucket = "TRACESMITH_WORKERS"
)

// registryBeat is the interval at which entries are renewed.
const registryBeat = 3 * time.Second

// Phase is the state of a run, as its coordinator reports it.
type Phase string

// The phases of a run. A stopped or completed run has no coordinator, but can get a new
// one.
const (
	Planning  Phase = "planning"
	Working   Phase = "working"
	Draining  Phase = "draining"  // no new job starts
	Stopping  Phase = "stopping"  // workers return running jobs to the queue
	Stopped   Phase = "stopped"   // resumable
	Completed Phase = "completed" // every job is done or dead
)

// RunEntry is a coordinator's entry about its run.
type RunEntry struct {
	RunID    string          `json:"run_id"`
	Phase    Phase           `json:"phase"`
	Host     string          `json:"host"`
	PID      int             `json:"pid"`
	Owner    string          `json:"owner"` // identifies the process
	Dir      string          `json:"run_dir"`
	Key      string          `json:"run_dir_key,omitempty"` // random, kept in the run directory
	Version  string          `json:"version"`
	Protocol int             `json:"protocol"`
	Lease    time.Duration   `json:"lease_ns"`
	Begun    time.Time       `json:"begun"`
	Info     json.RawMessage `json:"info,omitempty"` // data of the caller
	Beat     uint64          `json:"beat"`           // makes every renewal different

	Seen     time.Time `json:"-"` // time at which the servers stored the entry
	Revision uint64    `json:"-"`
}

// WorkerEntry is a worker's entry about itself.
type WorkerEntry struct {
	ID       string          `json:"id"`
	Name     string          `json:"name"`
	Host     string          `json:"host"`
	PID      int             `json:"pid"`
	Version  string          `json:"version"`
	Protocol int             `json:"protocol"`
	RunID    string          `json:"run_id,omitempty"` // "" = waiting for a run
	State    string          `json:"state"`            // waiting, working, draining; at its end left, or refused for Reason
	Reason   string          `json:"reason,omitempty"`
	Slots    int             `json:"slots"`
	Running  []string        `json:"running"`            // job ids
	Activity json.RawMessage `json:"activity,omitempty"` // what these jobs do, for people
	Load     float64         `json:"load"`               // 1-minute load average of its machine
	Begun    time.Time       `json:"begun"`
	Beat     uint64          `json:"beat"`

	Seen time.Time `json:"-"`
}

// Alive reports whether the worker renewed its entry recently and has neither left nor been
// refused.
func (w WorkerEntry) Alive(now time.Time) bool {
	return w.State != "left" && w.State != "refused" && now.Sub(w.Seen) < 10*registryBeat
}

func (c *Conn) openRegistry(ctx context.Context) (err error) {
	if c.runs, err = bucket(ctx, c.caller, c.js, runsBucket, c.replicas, 0, false); err == nil {
		c.workers, err = bucket(ctx, c.caller, c.js, workersBucket, c.replicas, 24*time.Hour, false)
	}
	if err != nil {
		return errors.Join(err, c.Close())
	}
	return nil
}

// Completed reports whether a run's entry says that it has completed. A worker calls it when
// it cannot join a run that accepted workers a moment ago, because the coordinator of a
// completed run removes its queue. If the registry cannot be read, Completed returns false.
func (c *Conn) Completed(ctx context.Context, id string) bool {
	entry, ok, err := c.RunEntry(ctx, id)
	return err == nil && ok && entry.Phase == Completed
}

// RunEntry returns the entry of a run; ok is false if there is none.
func (c *Conn) RunEntry(ctx context.Context, id string) (r RunEntry, ok bool, err error) {
	var kve jetstream.KeyValueEntry
	err = c.call(ctx, "reading the registry", func(ctx context.Context) (err error) {
		kve, err = c.runs.Get(ctx, id)
		return err
	})
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return r, false, nil
	}
	if err != nil {
		return r, false, err
	}
	r, err = decodeRun(kve.Value(), kve.Revision(), kve.Created())
	return r, err == nil, err
}

func decodeRun(body []byte, rev uint64, at time.Time) (r RunEntry, err error) {
	if err := json.Unmarshal(body, &r); err != nil {
		return r, fmt.Errorf("reading the registry: %w", err)
	}
	r.Revision, r.Seen = rev, at
	return r, nil
}

// Runs returns the runs of the cluster, ordered by their last renewal, oldest first.
func (c *Conn) Runs(ctx context.Context) ([]RunEntry, error) {
	var out []RunEntry
	err := c.readRegistry(ctx, runsBucket, func(body []byte, rev uint64, at time.Time) error {
		r, err := decodeRun(body, rev, at)
		out = append(out, r)
		return err
	})
	return out, err
}

// Workers returns the workers that renewed their entry in the last 24 hours.
func (c *Conn) Workers(ctx context.Context) ([]WorkerEntry, error) {
	seen := map[string]int{}
	var out []WorkerEntry
	err := c.readRegistry(ctx, workersBucket, func(body []byte, _ uint64, at time.Time) error {
		var w WorkerEntry
		if err := json.Unmarshal(body, &w); err != nil {
			return fmt.Errorf("reading the registry: %w", err)
		}
		w.Seen = at
		if i, duplicate := seen[w.ID]; duplicate {
			out[i] = w
			return nil
		}
		seen[w.ID] = len(out)
		out = append(out, w)
		return nil
	})
	return out, err
}

func (c *Conn) readRegistry(ctx context.Context, name string, show func(body []byte, rev uint64, at time.Time) error) error {
	var s jetstream.Stream
	err := c.call(ctx, "reading the registry", func(ctx context.Context) (err error) {
		s, err = c.js.Stream(ctx, "KV_"+name)
		return err
	})
	if err != nil {
		return err
	}
	return c.follow(ctx, s, 1, func(m jetstream.Msg, seq uint64) error {
		meta, err := m.Metadata()
		if err != nil || m.Headers().Get("KV-Operation") != "" {
			return err
		}
		return show(m.Data(), seq, meta.Timestamp)
	}, func() bool { return false })
}

// PutWorker stores or renews a worker's entry. It sets Protocol and Beat.
func (c *Conn) PutWorker(ctx context.Context, w WorkerEntry) error {
	w.Protocol, w.Beat = Protocol, uint64(time.Now().UnixNano())
	body, err := json.Marshal(w)
	if err != nil {
		return fmt.Errorf("encoding a worker's entry: %w", err)
	}
	return c.call(ctx, "writing to the registry", func(ctx context.Context) error {
		_, err := c.workers.Put(ctx, w.ID, body)
		return err
	})
}

// CoordinatorLease is the right to coordinate a run. It is renewed in the background until Release.
type CoordinatorLease struct {
	c      *Conn
	ctx    context.Context
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup

	mu         sync.Mutex
	entry      RunEntry
	unanswered []string // entries whose writes got no answer since the last success
}

// LeaseRun takes the right to coordinate a run, which is free in any of these cases:
//
//   - The run has no coordinator.
//   - Its coordinator used the caller's run directory. It must be dead, because the caller
//     now holds the lock of the directory. RunEntry.Key identifies the directory, because
//     host names and paths are often equal in containers.
//   - Its coordinator has not renewed its entry for r.Lease, or for ten heartbeats if that
//     is longer, while LeaseRun waited.
//
// If the coordinator renews its entry meanwhile, LeaseRun returns a *LockedError.
func (c *Conn) LeaseRun(ctx context.Context, r RunEntry) (*CoordinatorLease, error) {
	host, _ := os.Hostname()
	r.Host, r.PID, r.Protocol, r.Begun, r.Phase = host, os.Getpid(), Protocol, time.Now().UTC(), Planning
	l := &CoordinatorLease{c: c}
	first, start := uint64(0), time.Now()
	for {
		old, ok, err := c.RunEntry(ctx, r.RunID)
		if err != nil {
			return nil, err
		}
		first = cmp.Or(first, old.Revision)
		vacant := !ok || old.Phase == Stopped || old.Phase == Completed || old.Host == r.Host && old.Dir == r.Dir && old.Key == r.Key && r.Key != ""
		if vacant || time.Since(start) > max(10*registryBeat, r.Lease) {
			l.entry = r
			l.entry.Revision = old.Revision
			if r.Info == nil { // keep the previous coordinator's info until SetPhase stores new info
				l.entry.Info = old.Info
			}
			switch err := l.put(ctx); {
			case err == nil:
				l.ctx, l.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
				l.wg.Go(l.beat)
				return l, nil
			case !errors.Is(err, ErrLeaseLost):
				return nil, err
			}
		}
		if !vacant && old.Revision > first { // renewed while LeaseRun waited
			return nil, &LockedError{Dir: r.RunID + " on " + c.Place(), What: "run", Holder: fmt.Sprintf("pid %d on %s, in %s", old.PID, old.Host, old.Dir)}
		}
		if err := Pause(ctx, time.Second); err != nil {
			return nil, err
		}
	}
}

// put writes the entry by compare-and-swap. It returns ErrLeaseLost if another process has
// written the entry. The caller holds mu, or no other goroutine runs yet.
func (l *CoordinatorLease) put(ctx context.Context) error {
	l.entry.Beat++
	body, err := json.Marshal(l.entry)
	if err != nil {
		return fmt.Errorf("encoding the run's entry: %w", err)
	}
	err = l.c.call(ctx, "writing to the registry", func(ctx context.Context) error {
		rev, err := l.c.runs.Update(ctx, l.entry.RunID, body, l.entry.Revision)
		for conflict(err) {
			kve, getErr := l.c.runs.Get(ctx, l.entry.RunID)
			switch {
			case getErr == nil && string(kve.Value()) == string(body):
				rev, err = kve.Revision(), nil
			case getErr == nil && slices.Contains(l.unanswered, string(kve.Value())):
				rev, err = l.c.runs.Update(ctx, l.entry.RunID, body, kve.Revision())
			case getErr != nil && !errors.Is(getErr, jetstream.ErrKeyNotFound):
				return getErr
			default:
				return ErrLeaseLost
			}
		}
		if err != nil {
			return err
		}
		l.entry.Revision, l.unanswered = rev, nil
		return nil
	})
	if err != nil {
		l.unanswered = append(l.unanswered, string(body))
	}
	return err
}

func (l *CoordinatorLease) beat() {
	tick := time.NewTicker(registryBeat)
	defer tick.Stop()
	for {
		select {
		case <-l.ctx.Done():
			return
		case <-tick.C:
		}
		l.mu.Lock()
		err := l.put(l.ctx)
		l.mu.Unlock()
		if errors.Is(err, ErrLeaseLost) {
			l.cancel(errors.New("another process coordinates this run now"))
			return
		}
	}
}

// SetPhase stores a new phase. It also stores info unless info is nil.
func (l *CoordinatorLease) SetPhase(ctx context.Context, p Phase, info json.RawMessage) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entry.Phase = p
	if info != nil {
		l.entry.Info = info
	}
	return l.put(ctx)
}

// Context returns a context that ends when another process takes over the run or at Release.
func (l *CoordinatorLease) Context() context.Context { return l.ctx }

// Release stops the renewal and ends the context. The entry stays in the registry.
func (l *CoordinatorLease) Release() {
	l.cancel(context.Canceled)
	l.wg.Wait()
}

// WorkerID turns a name into a valid key of the registry. Different names may get the same key.
func WorkerID(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return '_'
	}, name)
}
