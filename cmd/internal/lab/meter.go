package lab

import (
	"context"
	"sync"
	"time"

	"github.com/tracesmith/tracesmith/env"
)

// meter measures how long a sandbox takes to start and how long programs run in it. It is
// safe for concurrent use.
type meter struct {
	mu      sync.Mutex
	program time.Duration
	start   time.Duration
}

// takeProgram returns the run time of the programs since the last call.
func (m *meter) takeProgram() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := m.program
	m.program = 0
	return d
}

// lastStart returns how long the last start of a sandbox took.
func (m *meter) lastStart() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.start
}

// meteredDriver is a driver whose sandboxes report to a meter.
type meteredDriver struct {
	env.Driver
	meter *meter
}

func (d meteredDriver) Start(ctx context.Context, spec env.SandboxSpec) (env.Sandbox, error) {
	start := time.Now()
	sb, err := d.Driver.Start(ctx, spec)
	if err != nil {
		return nil, err
	}
	d.meter.mu.Lock()
	d.meter.start = time.Since(start)
	d.meter.mu.Unlock()
	return meteredSandbox{sb, d.meter}, nil
}

type meteredSandbox struct {
	env.Sandbox
	meter *meter
}

func (s meteredSandbox) Run(ctx context.Context, c env.Command) (env.Result, error) {
	r, err := s.Sandbox.Run(ctx, c)
	s.meter.mu.Lock()
	s.meter.program += r.Wall
	s.meter.mu.Unlock()
	return r, err
}

// Workdir implements env.HostSandbox. It returns where the driver put the workspace.
func (s meteredSandbox) Workdir() string { return env.WorkdirOf(s.Sandbox, "") }

// TempDir implements env.HostSandbox.
func (s meteredSandbox) TempDir() string { return env.TempDirOf(s.Sandbox) }

// HostPython implements env.HostSandbox.
func (s meteredSandbox) HostPython() string { return env.HostPythonOf(s.Sandbox) }
