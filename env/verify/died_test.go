package verify

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
)

// dyingDriver is a driver whose first sandboxes die with err at their first command. kills is their number.
type dyingDriver struct {
	env.Driver
	err            error
	kills, started int
}

func (m *dyingDriver) Start(ctx context.Context, spec env.SandboxSpec) (env.Sandbox, error) {
	sb, err := m.Driver.Start(ctx, spec)
	if m.started++; err != nil || m.started > m.kills {
		return sb, err
	}
	return &dyingSandbox{sb, m.err}, nil
}

type dyingSandbox struct {
	env.Sandbox
	err error
}

func (d *dyingSandbox) Run(ctx context.Context, _ env.Command) (env.Result, error) {
	if err := d.Close(ctx); err != nil {
		return env.Result{}, err
	}
	return env.Result{}, d.err
}

// If sandboxes die repeatedly, the verdict blames the patch. A single dead sandbox does not decide.
func TestDeadSandboxesAreRetried(t *testing.T) {
	base := fixture(t)
	for kills, want := range map[int]string{1: schemas.VerifiedPass, 2: schemas.VerifiedPass, maxDeaths: schemas.VerifiedFail} {
		v := verifier(t)
		driver := &dyingDriver{Driver: v.cfg.Driver, err: &env.DiedError{CausedByCommand: true, Reason: "its stream ended"}, kills: kills}
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

// If the driver reports an external cause, dead sandboxes never decide a verdict.
func TestExternalDeathIsAnError(t *testing.T) {
	base := fixture(t)
	v := verifier(t)
	driver := &dyingDriver{Driver: v.cfg.Driver, err: &env.DiedError{Reason: "its process was killed from outside"}, kills: maxDeaths}
	v.cfg.Driver = driver
	patch, sha := patchTo(t, v, base, honest(t))
	got, err := v.Verify(t.Context(), task(base, pytestEntry, pytestSpec), base, patch, sha)
	if !errors.Is(err, env.ErrSandboxDied) || got.Resolved != nil || driver.started != maxDeaths {
		t.Errorf("%+v, %v after %d sandboxes", got, err, driver.started)
	}
}
