package engine

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Options of an Engine. Zero values mean the measured defaults.
type Options struct {
	RunID string // names the streams: letters, digits, '-' and '_'
	Lock  *Lock  // of the run directory; required unless URL is set
	URL   string // external NATS servers, comma-separated; "" = embedded

	Concurrency int           // jobs in flight over all workers; default 16
	Replicas    int           // copies of every stream in a cluster; default 1
	MaxDeliver  int           // failures until a job is dead; default 4
	AckWait     time.Duration // a silent owner loses its job after this; default 60s
	Heartbeat   time.Duration // default 15s
	Reconcile   time.Duration // between two reconciliations; default 1m
	CallTimeout time.Duration // deadline of one try of one call; default 5s
	MinFree     uint64        // bytes that must be free to claim; default 512 MiB
	Log         *slog.Logger  // default: nowhere
}

func (o Options) withDefaults() Options {
	set := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	set(&o.AckWait, time.Minute)
	set(&o.Heartbeat, 15*time.Second)
	set(&o.Reconcile, time.Minute)
	set(&o.CallTimeout, 5*time.Second)
	if o.Concurrency == 0 {
		o.Concurrency = 16
	}
	if o.Replicas == 0 {
		o.Replicas = 1
	}
	if o.MaxDeliver == 0 {
		o.MaxDeliver = 4
	}
	if o.MinFree == 0 {
		o.MinFree = 512 << 20
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// Engine is the queue, the records and the step logs of one run. Its methods
// may be called from several goroutines.
type Engine struct {
	opt      Options
	instance string // names this process among owners
	dir      string // of the embedded store, "" if external
	srv      *server.Server
	nc       *nats.Conn
	js       jetstream.JetStream
	tasks    jetstream.Stream
	steps    jetstream.Stream
	kv       jetstream.KeyValue
	workers  jetstream.Consumer

	mu    sync.Mutex
	owned map[string]bool // jobs whose lease this process holds

	life context.Context // ends with Close; leases and the reconciler live in it
	stop context.CancelFunc
	wg   sync.WaitGroup
}

// CheckRunID says what is wrong with a run id: it names streams and objects.
func CheckRunID(id string) error {
	if !runIDPattern.MatchString(id) {
		return fmt.Errorf("run id %q: use 1 to 64 letters, digits, '-' and '_'", id)
	}
	return nil
}

var runIDPattern = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// Open starts or joins the engine of a run. An embedded engine starts in a few
// milliseconds and makes the jobs of a killed process available at once.
func Open(ctx context.Context, opt Options) (*Engine, error) {
	opt = opt.withDefaults()
	if err := CheckRunID(opt.RunID); err != nil {
		return nil, err
	}
	var suffix [6]byte
	_, _ = rand.Read(suffix[:]) // never fails
	host, _ := os.Hostname()
	e := &Engine{
		opt: opt, owned: map[string]bool{},
		instance: fmt.Sprintf("%s-%d-%s", host, os.Getpid(), hex.EncodeToString(suffix[:])),
	}
	e.life, e.stop = context.WithCancel(context.WithoutCancel(ctx))
	if err := e.connect(); err != nil {
		return nil, err
	}
	if err := errors.Join(e.space(nil), e.lay(ctx)); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	if err := e.reconcile(ctx, e.srv != nil); err != nil {
		return nil, errors.Join(fmt.Errorf("reconciling at start-up: %w", err), e.Close())
	}
	e.wg.Go(func() { e.reconcileLoop(e.life) })
	return e, nil
}

func (e *Engine) connect() error {
	url, opts := e.opt.URL, []nats.Option{
		nats.Name("tracesmith"), nats.MaxReconnects(-1), nats.ReconnectWait(250 * time.Millisecond), nats.Timeout(e.opt.CallTimeout),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { e.opt.Log.Warn("engine connection", "error", err) }),
	}
	if url == "" {
		if e.opt.Lock == nil {
			return errors.New("an embedded engine needs the lock of its run directory")
		}
		if err := e.serve(); err != nil {
			return err
		}
		opts = append(opts, nats.InProcessServer(e.srv))
	}
	nc, err := nats.Connect(url, opts...)
	if err != nil {
		return errors.Join(fmt.Errorf("connecting to the job engine: %w", err), e.Close())
	}
	e.nc = nc
	if e.js, err = jetstream.New(nc); err != nil {
		return errors.Join(fmt.Errorf("opening JetStream: %w", err), e.Close())
	}
	return nil
}

// serve starts the embedded server: synchronous writes, no port.
func (e *Engine) serve() error {
	e.dir = filepath.Join(e.opt.Lock.Dir(), "engine")
	if err := os.MkdirAll(e.dir, 0o700); err != nil {
		return fmt.Errorf("creating engine directory: %w", err)
	}
	srv, err := server.NewServer(&server.Options{
		ServerName: "tracesmith", DontListen: true, NoSigs: true, MaxPayload: maxPayload,
		JetStream: true, StoreDir: e.dir, SyncAlways: true, SyncInterval: 2 * time.Minute, // both are needed
		JetStreamMaxStore: 1 << 40, JetStreamMaxMemory: 256 << 20, // the free-space guard is the real limit
	})
	if err != nil {
		return fmt.Errorf("starting the embedded job engine: %w", err)
	}
	srv.SetLogger(serverLog{e.opt.Log}, false, false)
	srv.Start()
	e.srv = srv
	if !srv.ReadyForConnections(10 * time.Second) {
		return errors.Join(&StuckError{Op: "starting", Err: errors.New("not ready after 10s")}, e.Close())
	}
	return nil
}

// lay creates the streams, the bucket and the consumer, or joins them.
func (e *Engine) lay(ctx context.Context) error {
	run, r := e.opt.RunID, e.opt.Replicas
	err := e.call(ctx, "creating the job stream", func(ctx context.Context) (err error) {
		e.tasks, err = e.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
			Name: "TASKS_" + run, Subjects: []string{e.taskSubject("*")}, Retention: jetstream.WorkQueuePolicy,
			Storage: jetstream.FileStorage, Discard: jetstream.DiscardNew, MaxBytes: 4 << 30, Duplicates: 2 * time.Minute,
			AllowAtomicPublish: true, AllowDirect: true, Replicas: r,
		})
		return err
	})
	if err != nil {
		return err
	}
	err = e.call(ctx, "creating the step log", func(ctx context.Context) (err error) {
		e.steps, err = e.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
			Name: "STEPS_" + run, Subjects: []string{e.stepSubject("*")}, Storage: jetstream.FileStorage,
			Discard: jetstream.DiscardNew, Duplicates: 2 * time.Minute, AllowDirect: true, Replicas: r,
		})
		return err
	})
	if err != nil {
		return err
	}
	err = e.call(ctx, "creating the record bucket", func(ctx context.Context) (err error) {
		e.kv, err = e.js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{
			Bucket: "EPISODES_" + run, History: 1, Storage: jetstream.FileStorage, Replicas: r,
		})
		return err
	})
	if err != nil {
		return err
	}
	return e.hire(ctx, e.srv != nil)
}

// hire creates the workers' consumer. anew deletes an old one first, which
// makes its unacknowledged jobs available at once; the counts that matter are
// in the records.
func (e *Engine) hire(ctx context.Context, anew bool) error {
	return e.call(ctx, "creating the worker consumer", func(ctx context.Context) (err error) {
		if anew {
			if err := e.tasks.DeleteConsumer(ctx, "workers"); err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
				return err
			}
		}
		e.workers, err = e.tasks.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{
			Durable: "workers", AckPolicy: jetstream.AckExplicitPolicy, AckWait: e.opt.AckWait,
			MaxDeliver: e.opt.MaxDeliver, MaxAckPending: e.opt.Concurrency, Replicas: e.opt.Replicas,
		})
		return err
	})
}

// Close stops the reconciler, the renewal of leases still held and, if
// embedded, the server. Nothing else may be under way.
func (e *Engine) Close() error {
	e.stop()
	e.wg.Wait()
	if e.nc != nil {
		e.nc.Close()
	}
	if e.srv != nil {
		e.srv.Shutdown()
		e.srv.WaitForShutdown()
	}
	return nil
}

// call runs one request with a deadline per try. No answer is tried again and
// at last named for what it most probably is.
func (e *Engine) call(ctx context.Context, op string, f func(context.Context) error) error {
	var err error
	for range 3 {
		try, cancel := context.WithTimeout(ctx, e.opt.CallTimeout)
		err = f(try)
		cancel()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("%s: %w", op, context.Cause(ctx))
		case !silent(err):
			return fmt.Errorf("%s: %w", op, err)
		}
		if full := e.space(err); full != nil {
			return full
		}
	}
	return &StuckError{Op: op, Err: err}
}

// space returns a *DiskFullError if the embedded store is short of room.
func (e *Engine) space(cause error) error {
	if e.dir == "" {
		return nil
	}
	var st syscall.Statfs_t
	if err := syscall.Statfs(e.dir, &st); err != nil {
		return fmt.Errorf("measuring free space: %w", err)
	}
	if free := st.Bavail * uint64(st.Bsize); free < e.opt.MinFree {
		return &DiskFullError{Dir: e.dir, Free: free, Floor: e.opt.MinFree, Err: cause}
	}
	return nil
}

func (e *Engine) taskSubject(id string) string { return "task." + e.opt.RunID + ".rollout." + id }
func (e *Engine) stepSubject(id string) string { return "step." + e.opt.RunID + "." + id }

// serverLog passes the server's complaints on and drops its chatter.
type serverLog struct{ log *slog.Logger }

func (l serverLog) Noticef(string, ...any)        {}
func (l serverLog) Debugf(string, ...any)         {}
func (l serverLog) Tracef(string, ...any)         {}
func (l serverLog) Warnf(format string, v ...any) { l.log.Warn("engine: " + fmt.Sprintf(format, v...)) }
func (l serverLog) Errorf(format string, v ...any) {
	l.log.Error("engine: " + fmt.Sprintf(format, v...))
}
func (l serverLog) Fatalf(format string, v ...any) {
	l.log.Error("engine: " + fmt.Sprintf(format, v...))
}
