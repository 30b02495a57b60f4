package verify

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
)

// countingDriver counts its starts. The first start waits for gate.
type countingDriver struct {
	env.Driver
	starts atomic.Int32
	gate   chan struct{}
}

func (c *countingDriver) Start(ctx context.Context, spec env.SandboxSpec) (env.Sandbox, error) {
	if c.starts.Add(1) == 1 {
		<-c.gate
	}
	return c.Driver.Start(ctx, spec)
}

// Concurrent verifications share one baseline of their task.
func TestVerdictsShareABaseline(t *testing.T) {
	v, base := verifier(t), fixture(t)
	driver := &countingDriver{Driver: v.cfg.Driver, gate: make(chan struct{})}
	v.cfg.Driver = driver
	patch, sha := patchTo(t, v, base, honest(t))
	const callers = 3
	var arrived atomic.Int32
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			if arrived.Add(1) == callers {
				close(driver.gate)
			}
			got, err := v.Verify(t.Context(), task(base, pytestEntry, schemas.TestSpec{Files: pytestSpec.Files}), base, patch, sha)
			if err != nil || got.Status != schemas.VerifiedPass {
				t.Errorf("%s, %q, %v", got.Status, got.Reason, err)
			}
		})
	}
	all.Wait()
	if n := driver.starts.Load(); n != callers+1 {
		t.Errorf("%d sandboxes for %d verdicts and one baseline", n, callers)
	}
}
