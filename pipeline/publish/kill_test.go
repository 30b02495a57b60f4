package publish_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/pipeline/publish"
	"github.com/tracesmith/tracesmith/sinks"
)

func TestConcurrentPublishersAgree(t *testing.T) {
	root := t.TempDir()
	staging := stage(t, "run", 0, 4)
	reports := make([]publish.Report, 4)
	errs := make([]error, 4)
	var wg sync.WaitGroup
	for i := range reports {
		cfg := config(t, dir(t, root), staging)
		wg.Go(func() { reports[i], errs[i] = publish.Publish(t.Context(), cfg) })
	}
	wg.Wait()
	for i := range reports {
		if errs[i] != nil || reports[i].Version != reports[0].Version {
			t.Errorf("publisher %d: %v %v", i, reports[i].Version, errs[i])
		}
	}
	wantDataset(t, dir(t, root), golden("run", 4)...)
}

// claimedStore is a store that another publisher claims right after the first attempt to
// read its claim.
type claimedStore struct {
	sinks.Store
	claim func()
	once  sync.Once
}

func (o *claimedStore) Get(ctx context.Context, key string) ([]byte, error) {
	body, err := o.Store.Get(ctx, key)
	if errors.Is(err, sinks.ErrNotFound) {
		o.once.Do(o.claim)
	}
	return body, err
}

func TestClaimDuringCheck(t *testing.T) {
	root, staging := t.TempDir(), stage(t, "run", 0, 1)
	dest := &claimedStore{Store: dir(t, root), claim: func() { run(t, config(t, dir(t, root), staging)) }}
	if rep := run(t, config(t, dest, staging)); !rep.AlreadyPublished {
		t.Errorf("%+v", rep)
	}
}

// dyingStore allows a number of writes and then fails all others, like a killed process.
type dyingStore struct {
	sinks.Store
	remaining atomic.Int32
}

var errKilled = errors.New("killed")

func (d *dyingStore) write(f func() error) error {
	if d.remaining.Add(-1) < 0 {
		return errKilled
	}
	return f()
}

func (d *dyingStore) Create(ctx context.Context, key string, body []byte) error {
	return d.write(func() error { return d.Store.Create(ctx, key, body) })
}

func (d *dyingStore) CreateFile(ctx context.Context, key, path string) error {
	return d.write(func() error { return d.Store.CreateFile(ctx, key, path) })
}

func (d *dyingStore) Copy(ctx context.Context, from, key string) error {
	return d.write(func() error { return d.Store.Copy(ctx, from, key) })
}

func (d *dyingStore) Swap(ctx context.Context, key string, old, body []byte) error {
	return d.write(func() error { return d.Store.Swap(ctx, key, old, body) })
}

func (d *dyingStore) Delete(ctx context.Context, key string) error {
	return d.write(func() error { return d.Store.Delete(ctx, key) })
}

// expire makes the current lease expire soon. A lease that is short from the start could
// expire while a slow publisher still works.
func expire(t *testing.T, s sinks.Store) {
	t.Helper()
	const key = "lease.json"
	for {
		have, err := s.Get(t.Context(), key)
		if errors.Is(err, sinks.ErrNotFound) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		lease := map[string]any{}
		if err := json.Unmarshal(have, &lease); err != nil {
			t.Fatal(err)
		}
		lease["ttl_ms"] = 200
		brief, err := json.Marshal(lease)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Swap(t.Context(), key, have, brief); err == nil {
			return
		} else if !errors.Is(err, sinks.ErrChanged) { // otherwise the holder has just renewed it
			t.Fatal(err)
		}
	}
}

func TestPublishAfterKillAnywhere(t *testing.T) {
	staging := stage(t, "run", 0, 3)
	whole := t.TempDir()
	run(t, config(t, dir(t, whole), staging))
	want := tree(t, whole)
	var roots []string
	for {
		root, writes := t.TempDir(), len(roots)
		dest := &dyingStore{Store: dir(t, root)}
		dest.remaining.Store(int32(writes))
		_, err := publish.Publish(t.Context(), config(t, dest, staging))
		if err == nil {
			break
		}
		if !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		d, err := publish.Open(t.Context(), dir(t, root))
		if err == nil {
			err = d.Verify(t.Context())
		}
		if _, pointed := tree(t, root)["latest.json"]; pointed != (err == nil) {
			t.Errorf("after %d writes: latest.json exists: %v, reading the dataset: %v", writes, pointed, err)
		}
		if _, err := os.Stat(filepath.Join(root, "README.md")); err == nil && len(parquets(t, root)) < len(latestParquets(t, root)) {
			t.Errorf("after %d writes the card names files that do not exist", writes)
		}
		expire(t, dir(t, root))
		roots = append(roots, root)
	}
	if len(roots) < 10 {
		t.Errorf("a publish needs only %d writes, want more to interrupt", len(roots))
	}
	for writes, root := range roots { // in parallel, because each publish waits until the lease of the killed one expires
		t.Run(fmt.Sprint(writes), func(t *testing.T) {
			t.Parallel()
			run(t, config(t, dir(t, root), staging))
			got := tree(t, root)
			want := maps.Clone(want)
			lock := filepath.Join(".tracesmith-tmp", "lock") // exists after the first swap
			delete(got, lock)
			delete(want, lock)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// gatedStore blocks each creation of a manifest until resume is closed. While it is frozen,
// it also blocks the renewal of leases.
type gatedStore struct {
	sinks.Store
	reached, resume chan struct{}
	frozen          atomic.Bool
}

func (g *gatedStore) Create(ctx context.Context, key string, body []byte) error {
	if filepath.Base(key) == "manifest.json" {
		g.reached <- struct{}{}
		<-g.resume
	}
	return g.Store.Create(ctx, key, body)
}

func (g *gatedStore) Swap(ctx context.Context, key string, old, body []byte) error {
	if key == "lease.json" && g.frozen.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	return g.Store.Swap(ctx, key, old, body)
}

type publishResult struct {
	rep publish.Report
	err error
}

// startPublish publishes in the background.
func startPublish(t *testing.T, cfg publish.Config) <-chan publishResult {
	done := make(chan publishResult, 1)
	go func() {
		rep, err := publish.Publish(t.Context(), cfg)
		done <- publishResult{rep, err}
	}()
	return done
}

func TestPublishersTakeTurns(t *testing.T) {
	root := t.TempDir()
	slow := &gatedStore{Store: dir(t, root), reached: make(chan struct{}), resume: make(chan struct{})}
	first := startPublish(t, config(t, slow, stage(t, "run", 0, 4)))
	<-slow.reached
	waiting := make(chan struct{})
	var once sync.Once
	cfg := config(t, dir(t, root), stage(t, "run", 0, 5))
	cfg.Progress = func(stage string) {
		if strings.HasPrefix(stage, "waiting") {
			once.Do(func() { close(waiting) })
		}
	}
	second := startPublish(t, cfg)
	<-waiting
	for o := range dir(t, root).List(t.Context(), "") {
		if strings.HasSuffix(o.Key, "manifest.json") {
			t.Errorf("the second publisher did not wait: %s", o.Key)
		}
	}
	close(slow.resume)
	a, b := <-first, <-second
	if a.err != nil || b.err != nil || a.rep.Version == b.rep.Version {
		t.Fatalf("%+v\n%+v", a, b)
	}
	if d := wantDataset(t, dir(t, root), golden("run", 5)...); d.Manifest.Version != b.rep.Version {
		t.Error("the latest version is not that of the last publisher")
	}
}

// If a publisher is frozen for longer than its lease, another one takes over. When the first one resumes,
// it does not change anything that readers see.
func TestFrozenPublisherIsOvertaken(t *testing.T) {
	root := t.TempDir()
	frozen := &gatedStore{Store: dir(t, root), reached: make(chan struct{}), resume: make(chan struct{})}
	first := startPublish(t, config(t, frozen, stage(t, "run", 0, 4)))
	<-frozen.reached
	frozen.frozen.Store(true)
	expire(t, dir(t, root))
	second := run(t, config(t, dir(t, root), stage(t, "run", 0, 5)))
	frozen.frozen.Store(false)
	close(frozen.resume)
	if got := <-first; !errors.Is(got.err, publish.ErrLeaseLost) {
		t.Errorf("the frozen publisher returned %+v, %v, want ErrLeaseLost", got.rep, got.err)
	}
	if d := wantDataset(t, dir(t, root), golden("run", 5)...); d.Manifest.Version != second.Version {
		t.Error("the frozen publisher changed latest.json")
	}
}
