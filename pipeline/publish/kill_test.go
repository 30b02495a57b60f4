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

// overtaken is a store whose dataset another publisher claims right after the first
// look for it.
type overtaken struct {
	sinks.Store
	claim func()
	once  sync.Once
}

func (o *overtaken) Get(ctx context.Context, key string) ([]byte, error) {
	body, err := o.Store.Get(ctx, key)
	if errors.Is(err, sinks.ErrNotFound) {
		o.once.Do(o.claim)
	}
	return body, err
}

func TestPlaceIsClaimedDuringTheCheck(t *testing.T) {
	root, staging := t.TempDir(), stage(t, "run", 0, 1)
	dest := &overtaken{Store: dir(t, root), claim: func() { run(t, config(t, dir(t, root), staging)) }}
	if rep := run(t, config(t, dest, staging)); !rep.Already {
		t.Errorf("%+v", rep)
	}
}

// dying lets a number of writes through and then nothing, like a killed process.
type dying struct {
	sinks.Store
	left atomic.Int32
}

var errKilled = errors.New("killed")

func (d *dying) write(f func() error) error {
	if d.left.Add(-1) < 0 {
		return errKilled
	}
	return f()
}

func (d *dying) Create(ctx context.Context, key string, body []byte) error {
	return d.write(func() error { return d.Store.Create(ctx, key, body) })
}

func (d *dying) CreateFile(ctx context.Context, key, path string) error {
	return d.write(func() error { return d.Store.CreateFile(ctx, key, path) })
}

func (d *dying) Copy(ctx context.Context, from, key string) error {
	return d.write(func() error { return d.Store.Copy(ctx, from, key) })
}

func (d *dying) Swap(ctx context.Context, key string, old, body []byte) error {
	return d.write(func() error { return d.Store.Swap(ctx, key, old, body) })
}

func (d *dying) Delete(ctx context.Context, key string) error {
	return d.write(func() error { return d.Store.Delete(ctx, key) })
}

// expire makes the current lease expire soon. If the test used a short lease from the start,
// it could expire under a slow publisher.
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
		} else if !errors.Is(err, sinks.ErrChanged) { // it was renewed at this moment
			t.Fatal(err)
		}
	}
}

func TestKilledAnywhereThenRepeated(t *testing.T) {
	staging := stage(t, "run", 0, 3)
	whole := t.TempDir()
	run(t, config(t, dir(t, whole), staging))
	want := tree(t, whole)
	var roots []string
	for {
		root, writes := t.TempDir(), len(roots)
		dest := &dying{Store: dir(t, root)}
		dest.left.Store(int32(writes))
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
			t.Errorf("after %d writes there is a pointer: %v; reading: %v", writes, pointed, err)
		}
		if _, err := os.Stat(filepath.Join(root, "README.md")); err == nil && len(parquets(t, root)) < len(listedRepos(t, root)) {
			t.Errorf("after %d writes the card names files that are not there", writes)
		}
		expire(t, dir(t, root))
		roots = append(roots, root)
	}
	if len(roots) < 10 {
		t.Errorf("done after %d writes: nothing was interrupted", len(roots))
	}
	for writes, root := range roots { // together: each waits for the lease of its dead
		t.Run(fmt.Sprint(writes), func(t *testing.T) {
			t.Parallel()
			run(t, config(t, dir(t, root), staging))
			got := tree(t, root)
			want := maps.Clone(want)
			lock := filepath.Join(".tracesmith-tmp", "lock") // is there from the first swap on
			delete(got, lock)
			delete(want, lock)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// gated stops before each creation of a manifest until it is let on, and can
// forbid the renewal of leases.
type gated struct {
	sinks.Store
	reached, on chan struct{}
	frozen      atomic.Bool
}

func (g *gated) Create(ctx context.Context, key string, body []byte) error {
	if filepath.Base(key) == "manifest.json" {
		g.reached <- struct{}{}
		<-g.on
	}
	return g.Store.Create(ctx, key, body)
}

func (g *gated) Swap(ctx context.Context, key string, old, body []byte) error {
	if key == "lease.json" && g.frozen.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	return g.Store.Swap(ctx, key, old, body)
}

type outcome struct {
	rep publish.Report
	err error
}

func begin(t *testing.T, cfg publish.Config) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		rep, err := publish.Publish(t.Context(), cfg)
		done <- outcome{rep, err}
	}()
	return done
}

func TestPublishersTakeTurns(t *testing.T) {
	root := t.TempDir()
	slow := &gated{Store: dir(t, root), reached: make(chan struct{}), on: make(chan struct{})}
	first := begin(t, config(t, slow, stage(t, "run", 0, 4)))
	<-slow.reached
	waits := make(chan struct{})
	var once sync.Once
	cfg := config(t, dir(t, root), stage(t, "run", 0, 5))
	cfg.Progress = func(stage string) {
		if strings.HasPrefix(stage, "waiting") {
			once.Do(func() { close(waits) })
		}
	}
	second := begin(t, cfg)
	<-waits
	for o := range dir(t, root).List(t.Context(), "") {
		if strings.HasSuffix(o.Key, "manifest.json") {
			t.Errorf("the second publisher did not wait: %s", o.Key)
		}
	}
	close(slow.on)
	a, b := <-first, <-second
	if a.err != nil || b.err != nil || a.rep.Version == b.rep.Version {
		t.Fatalf("%+v\n%+v", a, b)
	}
	if d := wantDataset(t, dir(t, root), golden("run", 5)...); d.Manifest.Version != b.rep.Version {
		t.Error("latest is not the version of the publisher that came last")
	}
}

// If a publisher is frozen for longer than its lease, another one overtakes it, and it then
// changes nothing that readers see.
func TestFrozenPublisherIsOvertaken(t *testing.T) {
	root := t.TempDir()
	frozen := &gated{Store: dir(t, root), reached: make(chan struct{}), on: make(chan struct{})}
	first := begin(t, config(t, frozen, stage(t, "run", 0, 4)))
	<-frozen.reached
	frozen.frozen.Store(true)
	expire(t, dir(t, root))
	second := run(t, config(t, dir(t, root), stage(t, "run", 0, 5)))
	frozen.frozen.Store(false)
	close(frozen.on)
	if got := <-first; !errors.Is(got.err, publish.ErrLeaseLost) {
		t.Errorf("the overtaken publisher: %+v, %v, want ErrLeaseLost", got.rep, got.err)
	}
	if d := wantDataset(t, dir(t, root), golden("run", 5)...); d.Manifest.Version != second.Version {
		t.Error("the overtaken publisher moved the pointer")
	}
}
