package setup

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/env"
)

// Prefix is the directory of a set-up's results in a sandbox, a virtual environment.
const Prefix = "/opt/task"

// activate makes the virtual environment and enters it. Its pip is the system's, if there is
// one, and acts on the environment. Installed modules are compiled: setup.py reads the
// variable that is unset here, and without compiled modules every later sandbox would compile
// them again, with the compiler's warnings each time.
const activate = `unset PYTHONDONTWRITEBYTECODE
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
	case res.TimedOut:
		return fmt.Errorf("the commands took longer than %s (sandbox.setup_timeout); the end of their output: %s", timeout, lastLines(res.Output, 5))
	case res.ExitCode != 0:
		said := lastLines(res.Output, 5)
		if said == "" {
			return fmt.Errorf("a command ended with exit code %d and printed nothing: correct the setup commands", res.ExitCode)
		}
		return fmt.Errorf("a command ended with exit code %d: %s: correct the setup commands", res.ExitCode, said)
	}
	return nil
}

// lastLines returns the last n lines of an output, joined in one line.
func lastLines(out []byte, n int) string {
	lines := strings.Split(strings.TrimSpace(strings.ToValidUTF8(string(out), "�")), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], " | ")
}
