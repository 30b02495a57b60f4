package fleet_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/tracesmith/tracesmith/internal/enginetest"
	"github.com/tracesmith/tracesmith/pipeline/engine"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// flakyStore fails the first Create and the first Get of keys below fleet/.
type flakyStore struct {
	sinks.Store
	mu     sync.Mutex
	failed map[string]bool
}

func (f *flakyStore) fail(op, key string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !strings.HasPrefix(key, "fleet/") || f.failed[op] {
		return nil
	}
	f.failed[op] = true
	return errors.New("the store answers 503 Service Unavailable")
}

func (f *flakyStore) Create(ctx context.Context, key string, body []byte) error {
	if err := f.fail("create", key); err != nil {
		return err
	}
	return f.Store.Create(ctx, key, body)
}

func (f *flakyStore) Get(ctx context.Context, key string) ([]byte, error) {
	if err := f.fail("get", key); err != nil {
		return nil, err
	}
	return f.Store.Get(ctx, key)
}

// A short outage of the store stops neither the coordinator, which writes the run's marker, nor a
// worker, which reads it.
func TestMarkerSurvivesStoreOutage(t *testing.T) {
	t.Parallel()
	h, conn := newFleet(t, 1)
	f := &flakyStore{failed: map[string]bool{}}
	h.WrapStore = func(s sinks.Store) sinks.Store { f.Store = s; return f }
	end := h.coordinate(t.Context())
	if err := h.join(t.Context(), conn, "w"); err != nil {
		t.Error(err)
	}
	if got := <-end; got.err != nil || got.rep.Ledger.Ran != 1 || len(f.failed) != 2 {
		t.Errorf("%v: %+v, failed %v", got.err, got.rep.Ledger, f.failed)
	}
}

// A second coordinator of the same run in another directory is refused, without affecting the
// first one.
func TestSecondCoordinatorElsewhereIsRefused(t *testing.T) {
	t.Parallel()
	h, conn := newFleet(t, 1)
	end := h.coordinate(t.Context())
	other := newHarness(filepath.Join(t.TempDir(), "elsewhere"), 1)
	other.Config.RunID, other.Config.Lease = h.Config.RunID, h.Config.Lease
	other.conn = conn
	for { // until the first one coordinates the run
		if _, ok, err := conn.RunEntry(t.Context(), h.Config.RunID); err != nil {
			t.Fatal(err)
		} else if ok {
			break
		}
		time.Sleep(10 * time.Millisecond) // reading takes the CPU time of the server
	}
	_, err := other.run(t.Context())
	coded, ok := errors.AsType[interface {
		error
		ExitCode() int
		Hint() string
	}](err)
	if !ok || coded.ExitCode() != 9 || !strings.Contains(coded.Error(), h.Dir) || !strings.Contains(coded.Hint(), "engine.lease") {
		t.Errorf("the second coordinator: %v", err)
	}
	if err := h.join(t.Context(), conn, "w"); err != nil {
		t.Error(err)
	}
	if got := <-end; got.err != nil || got.rep.Ledger.Ran != 1 || len(other.Staged(t)) != 0 {
		t.Errorf("the first coordinator: %v, %+v", got.err, got.rep.Ledger)
	}
}

// A complete run removes the incomplete objects that killed workers left in staging.
func TestCompleteRunRemovesTornObjects(t *testing.T) {
	t.Parallel()
	h, conn := newFleet(t, 1)
	end := h.coordinate(t.Context())
	half := filepath.Join(h.Dir, ".tracesmith-tmp", "half")
	h.OnStep = func(context.Context, schemas.Job, schemas.ToolCall) error {
		return errors.Join(os.MkdirAll(filepath.Dir(half), 0o755), os.WriteFile(half, []byte("half an episode"), 0o600))
	}
	if err := h.join(t.Context(), conn, "w"); err != nil {
		t.Error(err)
	}
	if got := <-end; got.err != nil {
		t.Error(got.err)
	}
	if _, err := os.Stat(half); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the incomplete object was not removed: %v", err)
	}
}

// If the servers revoke the credentials during a run, the coordinator and the worker end with exit
// code 4. With valid credentials the run resumes.
func TestRevokedCredentialsEndTheRun(t *testing.T) {
	t.Parallel()
	var opts *server.Options
	srv := enginetest.NATS(t, func(o *server.Options) {
		o.Username, o.Password = "u", "first"
		opts = o.Clone()
	})
	dial := func(password string) *engine.Conn {
		return dialNATS(t, "nats://u:"+password+"@"+srv.Addr().String())
	}
	conn := dial("first")
	h := newHarness(filepath.Join(t.TempDir(), "run"), 2)
	h.Config.RunID, h.Config.Lease = "fleet-1", 3*time.Second
	h.conn = conn
	var once sync.Once
	h.OnStep = func(context.Context, schemas.Job, schemas.ToolCall) (err error) {
		once.Do(func() {
			opts.Password = "second"
			err = srv.ReloadOptions(opts)
		})
		return err
	}
	end := h.coordinate(t.Context())
	checkDenied := func(who string, err error) {
		t.Helper()
		denied, ok := errors.AsType[*engine.AccessError](err)
		if !ok || denied.ExitCode() != 4 || strings.Contains(err.Error(), "first") {
			t.Errorf("%s: %v", who, err)
		}
	}
	checkDenied("worker", h.join(t.Context(), conn, "w"))
	got := <-end
	checkDenied("coordinator", got.err)
	if got.rep.ExitCode != 4 {
		t.Errorf("the report has exit code %d, want 4", got.rep.ExitCode)
	}
	conn = dial("second")
	h.conn = conn
	end = h.coordinate(t.Context())
	if err := h.join(t.Context(), conn, "w2"); err != nil {
		t.Error(err)
	}
	if got := <-end; got.err != nil || len(h.Staged(t)) != 2 {
		t.Errorf("%v: %d staged", got.err, len(h.Staged(t)))
	}
}
