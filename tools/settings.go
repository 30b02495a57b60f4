package tools

import (
	"context"
	"fmt"
	"strings"

	"github.com/tracesmith/tracesmith/env"
)

// Settings holds the settings that every tool has. Each tool's own settings embed it.
type Settings struct {
	// Commands for sh that run in the workspace at each reset; a failure is reported to the agent.
	Setup []string `json:"setup,omitempty"`
}

// SetupCommands returns Setup. It gives access to Setup in the settings of any tool.
func (s Settings) SetupCommands() []string { return s.Setup }

// setupOutput limits the output of a failed command that the agent sees, in bytes.
const setupOutput = 4 << 10

// setUp runs the commands and returns a description of those that failed, or "" if all succeeded.
func setUp(ctx context.Context, s *env.Session, commands []string) (failed string, err error) {
	for _, command := range commands {
		r, err := s.Sandbox.Run(ctx, env.Command{Args: []string{"sh", "-c", command}, Dir: s.Workdir, MaxOutput: setupOutput})
		if err != nil {
			return "", fmt.Errorf("running the set-up command %q: %w", command, err)
		}
		reason := fmt.Sprintf("exit code %d", r.ExitCode)
		switch {
		case r.TimedOut:
			reason = fmt.Sprintf("timed out after %s", env.DefaultCommandTimeout)
		case r.ExitCode == 0:
			continue
		}
		failed += fmt.Sprintf("The setup command %q failed (%s). Its output:\n%s\n", command, reason, strings.TrimRight(string(r.Output), "\n"))
	}
	return failed, nil
}
