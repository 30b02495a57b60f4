package preflight

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
)

// startLimit limits a check that starts a sandbox; pulling an image may take minutes.
const startLimit = 10 * time.Minute

// Sandbox describes a sandbox to check.
type Sandbox struct {
	Driver env.Driver
	Spec   env.SandboxSpec
	// Programs returns an error if the sandbox lacks programs that the tools need.
	Programs func(ctx context.Context, sb env.Sandbox) error
	// NewDebugger returns a debugger of a program in the sandbox; nil: the debugger is not checked.
	NewDebugger func(sb env.Sandbox, t schemas.Task) env.Debugger
}

// Check starts the sandbox and runs commands in it: those that look for programs, and, if there is a
// debugger, a program that it stops.
func (s Sandbox) Check(ctx context.Context) []Result {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	begin := time.Now()
	sb, err := s.Driver.Start(ctx, s.Spec)
	if err != nil {
		return []Result{Fail("sandbox", err)}
	}
	started := time.Since(begin)
	results := s.inside(ctx, sb, started)
	if err := sb.Close(ctx); err != nil {
		results = append(results, Fail("sandbox", fmt.Errorf("closing the sandbox: %w", err)))
	}
	return results
}

func (s Sandbox) inside(ctx context.Context, sb env.Sandbox, started time.Duration) []Result {
	if err := s.Programs(ctx, sb); err != nil {
		return []Result{Fail("sandbox", err)}
	}
	result := ok("sandbox", "%s starts in %s and runs commands", s.Driver.Name(), millis(started))
	if lacking := sb.Key().Unenforced; len(lacking) > 0 {
		result = warn("sandbox", "choose another sandbox.kind if these limits matter (docs/sandboxes.md)", "%s cannot enforce the limit on %s here; the column env_key records it", s.Driver.Name(), list(lacking))
	}
	results := []Result{result}
	if s.NewDebugger == nil {
		return results
	}
	results = append(results, python(ctx, s.Driver.Name(), sb))
	if results[1].Status != Failed {
		results = append(results, s.debugger(ctx, sb))
	}
	return results
}

// Oldest and newest minor version of Python 3 that the debugger supports.
const oldestPython, newestPython = 6, 14

// python checks the version of the interpreter in a sandbox.
func python(ctx context.Context, name string, sb env.Sandbox) Result {
	r, err := sb.Run(ctx, env.Command{Args: []string{"python3", "-c", "import platform; print(platform.python_version())"}})
	if err != nil {
		return Fail("python", err)
	}
	version := strings.TrimSpace(string(r.Output))
	var major, minor int
	if n, _ := fmt.Sscanf(version, "%d.%d", &major, &minor); n != 2 || r.ExitCode != 0 {
		return Fail("python", fmt.Errorf("python3 does not run in %s (exit code %d): %s: set sandbox.python to an interpreter that works, or install python3", name, r.ExitCode, version))
	}
	if major != 3 || minor < oldestPython || minor > newestPython {
		return warn("python", "set sandbox.python to a supported version", "%s has Python %s; the debugger supports 3.%d to 3.%d", name, version, oldestPython, newestPython)
	}
	return ok("python", "%s has Python %s", name, version)
}

// The program that the debugger stops, the line at which it does, and what it then prints.
const (
	program     = "def double(value):\n    result = 2 * value\n    return result\n\n\nprint(double(21))\n"
	programName = "tracesmith_doctor.py"
	stopLine    = 3
	stopValue   = "42"
)

// debugger lets the debugger stop a program and print a variable.
func (s Sandbox) debugger(ctx context.Context, sb env.Sandbox) Result {
	workdir := env.WorkdirOf(sb, s.Spec.Workdir)
	if err := sb.WriteFile(ctx, path.Join(workdir, programName), []byte(program), 0); err != nil {
		return Fail("debugger", fmt.Errorf("writing a program: %w", err))
	}
	begin := time.Now()
	d := s.NewDebugger(sb, schemas.Task{Workdir: workdir, Entrypoint: "python3 " + programName})
	reply, err := d.Command(ctx, env.DebuggerCommand{Text: fmt.Sprintf("b %s:%d ;; c ;; p result", programName, stopLine)})
	took := time.Since(begin)
	if err = errors.Join(err, d.Close(ctx)); err != nil {
		return Fail("debugger", err)
	}
	if reply.Frame == nil || reply.Frame.Line != stopLine || !strings.Contains(reply.Text, stopValue) {
		return Fail("debugger", fmt.Errorf("pdb did not stop at line %d of a program of %d lines: %s", stopLine, strings.Count(program, "\n"), strings.Join(strings.Fields(reply.Text), " ")))
	}
	return ok("debugger", "pdb stops at a breakpoint and prints a variable, in %s", millis(took))
}
