package engine

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// The embedded server: one process, no port, its files in the run directory.

const (
	// startPatience is long because every write is synced: replaying the store takes
	// seconds while other processes write much.
	startPatience = time.Minute
	// callPatience is longer, because losing a run that is almost done costs more than waiting: a stream answers nothing
	// while one of its writes is synced, which takes long if other processes keep the disk busy.
	callPatience = 5 * time.Minute
	// shutdownPatience bounds the wait for a server that may never stop: one of its
	// streams deadlocks if the disk is full while the stream is purged.
	shutdownPatience = 30 * time.Second
)

// connectEmbedded starts the server in this process and connects to it.
func (e *Engine) connectEmbedded() (err error) {
	if e.opt.Lock == nil {
		return errors.New("an embedded engine needs the lock of its run directory")
	}
	e.caller = e.embeddedCaller()
	if err := e.serve(); err != nil {
		return err
	}
	e.nc, err = nats.Connect("", nats.InProcessServer(e.srv), nats.Name("tracesmith"), nats.MaxReconnects(-1), nats.ReconnectWait(250*time.Millisecond),
		nats.Timeout(e.opt.CallTimeout), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { e.opt.Log.Warn("engine connection", "error", err) }))
	if err != nil {
		return errors.Join(fmt.Errorf("connecting to the job engine: %w", err), e.Close())
	}
	if e.js, err = jetstream.New(e.nc); err != nil {
		return errors.Join(fmt.Errorf("opening JetStream: %w", err), e.Close())
	}
	return nil
}

func (e *Engine) embeddedCaller() caller {
	return caller{timeout: e.opt.CallTimeout, patience: callPatience, diskFull: e.checkSpace}
}

// serve starts the server with synchronous writes.
func (e *Engine) serve() error {
	e.dir = filepath.Join(e.opt.Lock.Dir(), "engine")
	if err := os.MkdirAll(e.dir, 0o700); err != nil {
		return fmt.Errorf("creating engine directory: %w", err)
	}
	srv, err := server.NewServer(&server.Options{
		ServerName: "tracesmith", DontListen: true, NoSigs: true, MaxPayload: maxPayload,
		JetStream: true, StoreDir: e.dir, SyncAlways: !e.opt.Unsynced, SyncInterval: 2 * time.Minute, // SyncInterval is the server's default
		JetStreamMaxStore: 1 << 40, JetStreamMaxMemory: 256 << 20, // the free-space guard is the real limit
	})
	if err != nil {
		return fmt.Errorf("starting the embedded job engine: %w", err)
	}
	srv.SetLogger(serverLog{e.opt.Log}, false, false)
	srv.Start()
	e.srv = srv
	if !srv.ReadyForConnections(startPatience) {
		return errors.Join(&StuckError{Op: "starting", Err: fmt.Errorf("not ready after %s", startPatience)}, e.Close())
	}
	return nil
}

// shutdown stops the server and waits for it, up to shutdownPatience.
func (e *Engine) shutdown() {
	down := make(chan struct{})
	go func() {
		defer close(down)
		e.srv.Shutdown()
		e.srv.WaitForShutdown()
	}()
	select {
	case <-down:
	case <-time.After(shutdownPatience):
		e.opt.Log.Warn("the embedded engine did not stop in time; acknowledged data is on disk")
	}
}

// checkSpace returns a *DiskFullError, caused by cause, if less than MinFree is free. On a
// cluster it returns nil.
func (e *Engine) checkSpace(cause error) error {
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

// serverLog passes on the server's warnings and errors and drops the rest.
type serverLog struct{ log *slog.Logger }

func (l serverLog) Noticef(string, ...any) {}
func (l serverLog) Debugf(string, ...any)  {}
func (l serverLog) Tracef(string, ...any)  {}

func (l serverLog) Warnf(format string, v ...any) { l.log.Warn("engine: " + fmt.Sprintf(format, v...)) }

func (l serverLog) Errorf(format string, v ...any) {
	l.log.Error("engine: " + fmt.Sprintf(format, v...))
}

func (l serverLog) Fatalf(format string, v ...any) {
	l.log.Error("engine: " + fmt.Sprintf(format, v...))
}
