package env_test

import (
	"context"
	"testing"

	"github.com/tracesmith/tracesmith/env"
)

// kept is what a tool holds outside the sandbox.
type kept struct{ closed *int }

func (k *kept) Close() error {
	*k.closed++
	return nil
}

// Values that tools keep live as long as the session and are closed with it, once.
func TestSessionValuesAreClosedOnce(t *testing.T) {
	f := open(t)
	closed := 0
	hold := func() { env.Local[kept](f.sess).closed = &closed }
	f.reset(false)
	hold()
	f.reset(true)
	if env.Local[kept](f.sess).closed == nil || closed != 0 {
		t.Errorf("a soft reset closed %d", closed)
	}
	f.reset(false)
	if env.Local[kept](f.sess).closed != nil || closed != 1 {
		t.Errorf("a hard reset closed %d", closed)
	}
	hold()
	for range 2 {
		if err := f.Close(context.Background()); err != nil || closed != 2 {
			t.Errorf("the end closed %d (%v)", closed, err)
		}
	}
}
