package drivers

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/tracesmith/tracesmith/configs/plugin"
	"github.com/tracesmith/tracesmith/env"
)

func init() {
	env.Drivers.Register(plugin.Spec[env.Driver, struct{}]{
		Kind:    "fake",
		Summary: "another driver with scripted failures, for tests",
		Default: func() any { return &fakeConfig{Driver: "local"} },
		New: func(cfg any, _ struct{}) (env.Driver, error) {
			c := *cfg.(*fakeConfig)
			inner, err := env.Drivers.Build(c.Driver, nil, struct{}{})
			return &fake{Driver: inner, config: c}, err
		},
	})
}

type fakeConfig struct {
	Driver       string `json:"driver"`         // the one that does the work
	FailStarts   int64  `json:"fail_starts"`    // the first n starts fail
	DieAtCommand int64  `json:"die_at_command"` // a sandbox dies during its k-th command; 0 = never
	Deaths       int64  `json:"deaths"`         // how many sandboxes die that way; 0 = each
}

// fake wraps a driver and fails as its config says. Commands are counted per
// sandbox: each Run and each Write to a terminal is one.
type fake struct {
	env.Driver
	config         fakeConfig
	starts, deaths atomic.Int64
}

func (*fake) Name() string { return "fake" }

// Start implements env.Driver.
func (d *fake) Start(ctx context.Context, spec env.SandboxSpec) (env.Sandbox, error) {
	if n := d.starts.Add(1); n <= d.config.FailStarts {
		return nil, fmt.Errorf("starting a fake sandbox: start %d of %d that fail", n, d.config.FailStarts)
	}
	s, err := d.Driver.Start(ctx, spec)
	if err != nil {
		return nil, err
	}
	return &fakeSandbox{Sandbox: s, driver: d}, nil
}

type fakeSandbox struct {
	env.Sandbox
	driver   *fake
	commands atomic.Int64
}

// Workdir is the inner sandbox's.
func (s *fakeSandbox) Workdir() string {
	if w, ok := s.Sandbox.(interface{ Workdir() string }); ok {
		return w.Workdir()
	}
	return ""
}

// TempDir is the inner sandbox's.
func (s *fakeSandbox) TempDir() string { return env.TempDirOf(s.Sandbox) }

// command counts one and dies when its time has come.
func (s *fakeSandbox) command(ctx context.Context) error {
	c := s.driver.config
	if n := s.commands.Add(1); c.DieAtCommand == 0 || n != c.DieAtCommand {
		return nil
	}
	if c.Deaths > 0 && s.driver.deaths.Add(1) > c.Deaths {
		return nil
	}
	if err := s.Sandbox.Close(ctx); err != nil {
		return err
	}
	return &env.DiedError{DuringCommand: true, Reason: fmt.Sprintf("scripted, at command %d", c.DieAtCommand)}
}

func (s *fakeSandbox) Run(ctx context.Context, c env.Command) (env.Result, error) {
	if err := s.command(ctx); err != nil {
		return env.Result{}, err
	}
	return s.Sandbox.Run(ctx, c)
}

func (s *fakeSandbox) Open(ctx context.Context, spec env.TerminalSpec) (env.Terminal, error) {
	t, err := s.Sandbox.Open(ctx, spec)
	if err != nil {
		return nil, err
	}
	return &fakeTerminal{Terminal: t, sandbox: s}, nil
}

type fakeTerminal struct {
	env.Terminal
	sandbox *fakeSandbox
}

func (t *fakeTerminal) Write(ctx context.Context, p []byte) error {
	if err := t.sandbox.command(ctx); err != nil {
		return err
	}
	return t.Terminal.Write(ctx, p)
}
