package env_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
)

// baselineFinder has a find function that blocks until the test releases it or its context ends.
type baselineFinder struct {
	calls   int
	release chan error
}

func (f *baselineFinder) find(ctx context.Context) (schemas.TestSpec, error) {
	f.calls++
	select {
	case err := <-f.release:
		return schemas.TestSpec{Method: "found"}, err
	case <-ctx.Done():
		return schemas.TestSpec{}, ctx.Err()
	}
}

// get calls Baselines.Get in the background and sends its error to the channel.
func (f *baselineFinder) get(ctx context.Context, b *env.Baselines) chan error {
	ended := make(chan error, 1)
	go func() {
		spec, err := b.Get(ctx, "task", f.find)
		if err == nil && spec.Method != "found" {
			err = errors.New("Get returned lists that find did not return")
		}
		ended <- err
	}()
	return ended
}

// Concurrent callers share one run of the tests, and later callers get its lists.
func TestBaselinesAreFoundOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b env.Baselines
		s := &baselineFinder{release: make(chan error)}
		var all []chan error
		for range 4 {
			all = append(all, s.get(t.Context(), &b))
		}
		synctest.Wait()
		s.release <- nil
		all = append(all, s.get(t.Context(), &b))
		for _, ended := range all {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		if s.calls != 1 {
			t.Errorf("the tests ran %d times for five callers", s.calls)
		}
	})
}

// The run continues for the other callers if the first caller's context ends.
func TestBaselinesOutliveTheFirstCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b env.Baselines
		s := &baselineFinder{release: make(chan error)}
		ctx, cancel := context.WithCancel(t.Context())
		first := s.get(ctx, &b)
		synctest.Wait()
		second := s.get(t.Context(), &b)
		synctest.Wait()
		cancel()
		if err := <-first; !errors.Is(err, context.Canceled) {
			t.Errorf("the first caller: %v, want its cancellation", err)
		}
		s.release <- nil
		if err := <-second; err != nil || s.calls != 1 {
			t.Errorf("the second caller: %v after %d runs", err, s.calls)
		}
	})
}

// A run is canceled if no caller waits for it, and the next caller starts another.
func TestBaselinesAreCanceledWithTheLastCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b env.Baselines
		s := &baselineFinder{release: make(chan error)}
		ctx, cancel := context.WithCancel(t.Context())
		callers := []chan error{s.get(ctx, &b), s.get(ctx, &b)}
		synctest.Wait()
		cancel()
		for _, ended := range callers {
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("%v, want the cancellation", err)
			}
		}
		next := s.get(t.Context(), &b)
		synctest.Wait()
		s.release <- nil
		if err := <-next; err != nil || s.calls != 2 {
			t.Errorf("the next caller: %v after %d runs", err, s.calls)
		}
	})
}

func TestFailedBaselinesAreNotCached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b env.Baselines
		s := &baselineFinder{release: make(chan error)}
		broken := errors.New("no sandbox")
		for _, want := range []error{broken, nil} {
			ended := s.get(t.Context(), &b)
			synctest.Wait()
			s.release <- want
			if err := <-ended; !errors.Is(err, want) {
				t.Errorf("%v, want %v", err, want)
			}
		}
	})
}
