package verify

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
)

// mortal is a driver whose first sandboxes are killed from outside as soon as a
// command runs there.
type mortal struct {
	env.Driver
	how            error
	kills, started int
}

func (m *mortal) Start(ctx context.Context, spec env.SandboxSpec) (env.Sandbox, error) {
	sb, err := m.Driver.Start(ctx, spec)
	if m.started++; err != nil || m.started > m.kills {
		return sb, err
	}
	return &doomed{sb, m.how}, nil
}

type doomed struct {
	env.Sandbox
	how error
}

func (d *doomed) Run(ctx context.Context, _ env.Command) (env.Result, error) {
	if err := d.Close(ctx); err != nil {
		return env.Result{}, err
	}
	return env.Result{}, d.how
}

// A sandbox that is killed once says nothing about a patch; if sandboxes die each time, the patch
// is to blame.
func TestDeadSandboxesAreRetried(t *testing.T) {
	base := fixture(t)
	for kills, want := range map[int]string{1: schemas.VerifiedPass, 2: schemas.VerifiedPass, maxDeaths: schemas.VerifiedFail} {
		v := verifier(t)
		driver := &mortal{Driver: v.cfg.Driver, how: &env.DiedError{DuringCommand: true, Reason: "its stream ended"}, kills: kills}
		v.cfg.Driver = driver
		patch, sha := patchTo(t, v, base, honest(t))
		got, err := v.Verify(t.Context(), task(base, pytestEntry, pytestSpec), base, patch, sha)
		if err != nil {
			t.Fatal(err)
		}
		if got.Status != want || strings.Contains(got.Reason, "died") != (want == schemas.VerifiedFail) || driver.started != min(kills+1, maxDeaths) {
			t.Errorf("%d killed: %s (%s) after %d sandboxes", kills, got.Status, got.Reason, driver.started)
		}
	}
}

// Deaths that the driver attributes to somebody else never decide a verdict.
func TestKilledSandboxesDecideNothing(t *testing.T) {
	base := fixture(t)
	v := verifier(t)
	driver := &mortal{Driver: v.cfg.Driver, how: &env.DiedError{Reason: "its process was killed from outside"}, kills: maxDeaths}
	v.cfg.Driver = driver
	patch, sha := patchTo(t, v, base, honest(t))
	got, err := v.Verify(t.Context(), task(base, pytestEntry, pytestSpec), base, patch, sha)
	if !errors.Is(err, env.ErrSandboxDied) || got.Resolved != nil || driver.started != maxDeaths {
		t.Errorf("%+v, %v after %d sandboxes", got, err, driver.started)
	}
}
