package engine

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// MinFree is the default of Options.MinFree.
const MinFree = 512 << 20

// Options configure an Engine. A zero value means the default.
type Options struct {
	RunID string // names the streams: letters, digits, '-' and '_'
	Lock  *Lock  // of the run directory; required without Conn
	Conn  *Conn  // connection to external servers, not closed by the engine; nil = embedded
	// Join uses the streams of a run that another process coordinates: that process
	// creates and repairs them. It needs Conn.
	Join bool
	// Unsynced acknowledges embedded writes before they are on disk. For tests only.
	Unsynced bool
	Instance string // identifies this process as an owner; "" = host, pid and random bytes

	Concurrency int           // jobs in flight over all workers; default 16
	MaxDeliver  int           // failures after which a job is dead; default 4
	AckWait     time.Duration // an owner that does not renew its lease loses the job after this; default 60s
	Heartbeat   time.Duration // default 15s
	Reconcile   time.Duration // interval between reconciliations; default 1m
	CallTimeout time.Duration // deadline of one try of one call, embedded; default 5s
	MinFree     uint64        // free bytes required to claim a job; default MinFree
	Log         *slog.Logger  // default: discard
}

func (o Options) withDefaults() Options {
	set := func(d *time.Duration, v time.Duration) {
		*d = cmp.Or(*d, v)
	}
	set(&o.AckWait, time.Minute)
	set(&o.Heartbeat, min(15*time.Second, o.AckWait/4))
	set(&o.Reconcile, time.Minute)
	set(&o.CallTimeout, 5*time.Second)
	o.Concurrency = cmp.Or(o.Concurrency, 16)
	o.MaxDeliver = cmp.Or(o.MaxDeliver, 4)
	o.MinFree = cmp.Or(o.MinFree, MinFree)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return o
}

const (
	maxPayload = 8 << 20   // bytes of one message, embedded
	maxPart    = 512 << 10 // bytes of a job or of a part of a log entry in one message
)

// Engine is the queue, the records and the step logs of one run. Its methods
// are safe for concurrent use.
type Engine struct {
	caller
	opt      Options
	instance string // identifies this process as an owner
	dir      string // of the embedded store, "" if external
	srv      *server.Server
	nc       *nats.Conn
	js       jetstream.JetStream
	tasks    jetstream.Stream
	steps    jetstream.Stream
	kv       jetstream.KeyValue
	workers  jetstream.Consumer

	queueing     sync.RWMutex           // held for reading while jobs are recorded and published
	observations map[string]observation // running records as the reconciler last saw them; guarded by queueing

	mu      sync.Mutex
	owned   map[string]bool // jobs whose lease this process holds
	objects jetstream.ObjectStore

	life context.Context // canceled by Close; parent of leases and the reconciler
	stop context.CancelFunc
	wg   sync.WaitGroup
}

// observation is the revision of a running record and when it was first seen.
type observation struct {
	revision uint64
	since    time.Time
}

// CheckRunID returns an error if id cannot name streams and objects.
func CheckRunID(id string) error {
	if !runIDPattern.MatchString(id) {
		return fmt.Errorf("run id %q: use 1 to 64 letters, digits, '-' and '_'", id)
	}
	return nil
}

var runIDPattern = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// Open starts or joins the engine of a run. An embedded engine requeues the jobs
// of a killed process before Open returns.
func Open(ctx context.Context, opt Options) (*Engine, error) {
	opt = opt.withDefaults()
	if err := CheckRunID(opt.RunID); err != nil {
		return nil, err
	}
	e := &Engine{opt: opt, owned: map[string]bool{}, observations: map[string]observation{}, instance: cmp.Or(opt.Instance, Instance())}
	e.life, e.stop = context.WithCancel(context.WithoutCancel(ctx))
	if err := e.connect(); err != nil {
		return nil, err
	}
	if opt.Join {
		if err := e.join(ctx); err != nil {
			return nil, errors.Join(err, e.Close())
		}
		return e, nil
	}
	if err := errors.Join(e.checkSpace(nil), e.createStreams(ctx)); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	if e.srv != nil { // on a cluster, the coordinator first checks which episodes are staged
		if err := e.reconcile(ctx, true); err != nil {
			return nil, errors.Join(fmt.Errorf("reconciling at start-up: %w", err), e.Close())
		}
	}
	e.wg.Go(func() { e.reconcileLoop(e.life) })
	return e, nil
}

// Instance returns a unique name for this process.
func Instance() string {
	var suffix [6]byte
	_, _ = rand.Read(suffix[:]) // never fails
	host, _ := os.Hostname()
	return WorkerID(fmt.Sprintf("%s-%d-%s", host, os.Getpid(), hex.EncodeToString(suffix[:])))
}

func (e *Engine) connect() (err error) {
	if conn := e.opt.Conn; conn != nil {
		e.caller, e.nc, e.js = conn.caller, conn.nc, conn.js
		return nil
	}
	return e.connectEmbedded()
}

// createStreams creates the streams, the bucket and the consumer, or opens existing ones.
func (e *Engine) createStreams(ctx context.Context) (err error) {
	run, r, embedded := e.opt.RunID, e.replicas(), e.srv != nil
	e.tasks, err = ensureStream(ctx, e.caller, e.js, "creating the job stream", jetstream.StreamConfig{
		Name: "TASKS_" + run, Subjects: []string{e.taskSubject("*")}, Retention: jetstream.WorkQueuePolicy,
		Storage: jetstream.FileStorage, Discard: jetstream.DiscardNew, MaxBytes: 4 << 30, Duplicates: 2 * time.Minute,
		AllowAtomicPublish: true, AllowDirect: embedded, Replicas: r,
	}, embedded)
	if err != nil {
		return err
	}
	e.steps, err = ensureStream(ctx, e.caller, e.js, "creating the step log", jetstream.StreamConfig{
		Name: "STEPS_" + run, Subjects: []string{e.stepSubject("*")}, Storage: jetstream.FileStorage,
		Discard: jetstream.DiscardNew, Duplicates: 2 * time.Minute, AllowDirect: embedded, Replicas: r,
	}, embedded)
	if err != nil {
		return err
	}
	if e.kv, err = bucket(ctx, e.caller, e.js, "EPISODES_"+run, r, 0, embedded); err != nil {
		return err
	}
	return e.createConsumer(ctx, embedded)
}

// join opens the streams, the bucket and the consumer that the coordinator created.
func (e *Engine) join(ctx context.Context) error {
	return e.call(ctx, "joining the run "+e.opt.RunID, func(ctx context.Context) (err error) {
		if e.tasks, err = e.js.Stream(ctx, "TASKS_"+e.opt.RunID); err != nil {
			return err
		}
		if e.steps, err = e.js.Stream(ctx, "STEPS_"+e.opt.RunID); err != nil {
			return err
		}
		if e.kv, err = e.js.KeyValue(ctx, "EPISODES_"+e.opt.RunID); err != nil {
			return err
		}
		e.workers, err = e.tasks.Consumer(ctx, "workers")
		return err
	})
}

func (e *Engine) replicas() int {
	if e.opt.Conn != nil {
		return e.opt.Conn.replicas
	}
	return 1
}

// createConsumer creates the workers' consumer. If recreate is true, it deletes an existing one
// first, so that jobs that were delivered but not acknowledged are available at once. The
// records count the deliveries, so no count is lost.
func (e *Engine) createConsumer(ctx context.Context, recreate bool) error {
	deliver := e.opt.MaxDeliver
	if e.opt.Conn != nil {
		deliver = -1 // elections and lost nodes redeliver jobs that did not fail; records count failures
	}
	return e.call(ctx, "creating the worker consumer", func(ctx context.Context) (err error) {
		if recreate {
			if err := e.tasks.DeleteConsumer(ctx, "workers"); err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
				return err
			}
		}
		e.workers, err = e.tasks.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{
			Durable: "workers", AckPolicy: jetstream.AckExplicitPolicy, AckWait: e.opt.AckWait,
			MaxDeliver: deliver, MaxAckPending: e.opt.Concurrency, Replicas: e.replicas(),
		})
		return err
	})
}

// Close stops the reconciler, the renewal of leases still held and, if
// embedded, the server. No other call may be in progress.
func (e *Engine) Close() error {
	e.stop()
	e.wg.Wait()
	if e.nc != nil && e.opt.Conn == nil {
		e.nc.Close()
	}
	if e.srv == nil {
		return nil
	}
	e.shutdown()
	return nil
}

func (e *Engine) taskSubject(id string) string { return "task." + e.opt.RunID + ".rollout." + id }
func (e *Engine) stepSubject(id string) string { return "step." + e.opt.RunID + "." + id }
