package wire

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"golang.org/x/sync/semaphore"
)

func TestConcurrentGradingsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &Workbench{gradings: semaphore.NewWeighted(1)}
		done, err := w.acquireGrading(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		canceled, stop := context.WithCancel(t.Context())
		second := make(chan error)
		go func() {
			_, err := w.acquireGrading(canceled)
			second <- err
		}()
		synctest.Wait()
		select {
		case err := <-second:
			t.Fatalf("a second grading started before the first ended: %v", err)
		default:
		}
		stop()
		if err := <-second; !errors.Is(err, context.Canceled) {
			t.Errorf("canceled: %v", err)
		}
		done()
		if done, err = w.acquireGrading(t.Context()); err != nil {
			t.Fatal(err)
		}
		done()
	})
}
