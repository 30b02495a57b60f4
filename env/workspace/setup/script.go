package setup

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/env"
)

// Prefix is the directory of the set-up's results in a sandbox. It is a virtual environment.
const Prefix = "/opt/task"

// activate creates and activates the virtual environment. Its pip is the system's, if there is
// one, and installs into the environment. The first two lines make installers compile the modules
// to bytecode. Otherwise, every later sandbox would compile them again, and print the compiler's
// warnings each time.
const activate = `unset PYTHONDONTWRITEBYTECODE
export UV_COMPILE_BYTECODE=1
python3 -m venv --system-site-packages --without-pip ` + Prefix + `
export VIRTUAL_ENV=` + Prefix + ` PATH=` + Prefix + `/bin:$PATH PIP_DISABLE_PIP_VERSION_CHECK=1
python3 -c 'import pip' 2>/dev/null || python3 -m ensurepip >/dev/null 2>&1 || true
printf '#!/bin/sh\nexec ` + Prefix + `/bin/python3 -m pip "$@"\n' >` + Prefix + `/bin/pip
chmod +x ` + Prefix + `/bin/pip`

// runCommands runs the set-up commands in the active virtual environment.
func runCommands(ctx context.Context, sb env.Sandbox, commands []string, dir string, timeout time.Duration) error {
	script := strings.Join(append([]string{activate}, commands...), "\n")
	res, err := sb.Run(ctx, env.Command{Args: []string{"bash", "-e", "-c", script}, Dir: dir, Timeout: timeout})
	switch {
	case err != nil:
		return fmt.Errorf("running the set-up commands: %w", err)
	case res.TimedOut, res.ExitCode != 0:
		e := &CommandError{ExitCode: res.ExitCode, Output: strings.ToValidUTF8(string(res.Output), "\uFFFD")}
		if res.TimedOut {
			e.Timeout = timeout
		}
		return e
	}
	return nil
}

// CommandError means that a set-up command failed, which is a defect of the task.
type CommandError struct {
	ExitCode int
	Timeout  time.Duration // the time limit if the commands exceeded it, else 0
	Output   string        // of all commands
}

func (e *CommandError) Error() string {
	if e.Timeout > 0 {
		return e.Summary()
	}
	return e.Summary() + ": correct the setup commands"
}

// Summary returns the error message without the remedy.
func (e *CommandError) Summary() string {
	output := lastLines([]byte(e.Output), 5)
	switch {
	case e.Timeout > 0:
		return fmt.Sprintf("the commands took longer than %s (sandbox.setup_timeout); the end of their output: %s", e.Timeout, output)
	case output == "":
		return fmt.Sprintf("a command ended with exit code %d and printed nothing", e.ExitCode)
	}
	return fmt.Sprintf("a command ended with exit code %d: %s", e.ExitCode, output)
}

// lastLines returns the last n lines of an output, joined to one line.
func lastLines(out []byte, n int) string {
	lines := strings.Split(strings.TrimSpace(strings.ToValidUTF8(string(out), "�")), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], " | ")
}
