package env_test

import (
	"context"
	"testing"

	"github.com/tracesmith/tracesmith/env"
)

// toolState is a value that a tool keeps in the session.
type toolState struct{ closed *int }

func (s *toolState) Close() error {
	*s.closed++
	return nil
}

// Values that tools keep live as long as the session and are closed with it, once.
func TestSessionValuesAreClosedOnce(t *testing.T) {
	f := open(t)
	closed := 0
	keep := func() { env.Local[toolState](f.sess).closed = &closed }
	f.reset(false)
	keep()
	f.reset(true)
	if env.Local[toolState](f.sess).closed == nil || closed != 0 {
		t.Errorf("a soft reset dropped the value or closed it (%d closed)", closed)
	}
	f.reset(false)
	if env.Local[toolState](f.sess).closed != nil || closed != 1 {
		t.Errorf("after a hard reset: %d values closed, want 1 and a new value", closed)
	}
	keep()
	for range 2 {
		if err := f.Close(context.Background()); err != nil || closed != 2 {
			t.Errorf("after Close: %d values closed, want 2 (%v)", closed, err)
		}
	}
}
