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
		done, err := w.grading(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		stopped, stop := context.WithCancel(t.Context())
		waited := make(chan error)
		go func() {
			_, err := w.grading(stopped)
			waited <- err
		}()
		synctest.Wait()
		select {
		case err := <-waited:
			t.Fatalf("a second grading beside the first: %v", err)
		default:
		}
		stop()
		if err := <-waited; !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
		done()
		if done, err = w.grading(t.Context()); err != nil {
			t.Fatal(err)
		}
		done()
	})
}
