package publish_test

import (
	"context"
	"errors"
	"sync"
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

// dying lets a number of writes through and then nothing, like a killed process.
type dying struct {
	sinks.Store
	left int
}

var errKilled = errors.New("killed")

func (d *dying) write(f func() error) error {
	if d.left--; d.left < 0 {
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

func (d *dying) Replace(ctx context.Context, key string, body []byte) error {
	return d.write(func() error { return d.Store.Replace(ctx, key, body) })
}

func TestKilledAnywhereThenRepeated(t *testing.T) {
	staging := stage(t, "run", 0, 3)
	whole := t.TempDir()
	run(t, config(t, dir(t, whole), staging))
	want := tree(t, whole)
	for writes := 0; ; writes++ {
		root := t.TempDir()
		_, err := publish.Publish(t.Context(), config(t, &dying{dir(t, root), writes}, staging))
		if err == nil {
			if writes < 8 {
				t.Errorf("done after %d writes: nothing was interrupted", writes)
			}
			return
		}
		if !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		if _, err := publish.Open(t.Context(), dir(t, root)); err == nil && writes < len(want)-1 {
			t.Errorf("after %d writes the unfinished dataset can be opened", writes)
		}
		run(t, config(t, dir(t, root), staging))
		if diff := cmp.Diff(want, tree(t, root)); diff != "" {
			t.Fatalf("after %d writes: %s", writes, diff)
		}
	}
}
