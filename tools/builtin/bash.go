package builtin

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/tools"
)

type bashArgs struct {
	Command string `json:"command" jsonschema:"Command line or script to run. It cannot read input from a terminal."`
	Timeout *int   `json:"timeout,omitempty" jsonschema:"Time limit in seconds, 1 to 3600. Omit it to use the default."`
}

type bashSettings struct {
	tools.Settings
	Timeout int `json:"timeout,omitempty"` // default time limit of a call in seconds; 0 = sandbox.command_timeout
}

func init() {
	register("run commands in a shell that keeps its state", func(c bashSettings) (tools.Def[bashArgs], error) {
		return tools.Def[bashArgs]{
			Name: "bash", Category: "bash",
			Description: "Run a command in bash. All calls share one shell, so the working directory, variables, functions, " +
				"aliases, shell options and $? carry over from one call to the next. The shell starts in the workspace. " +
				"The call does not wait for background jobs (command &): they keep running until the session ends, and jobs " +
				"lists them. You get the command's standard output and standard error combined, and its exit code if it " +
				"is not 0. There is no terminal and no input: a program that asks a question reads end-of-file.",
			Example: bashArgs{Command: "cd src && python -m pytest -x -q 2>&1 | tail -n 40"},
			Call:    c.call,
			On:      bashReset,
		}, c.check()
	})
}

func (c bashSettings) check() error {
	if c.Timeout < 0 || c.Timeout > 3600 {
		return fmt.Errorf("timeout must be from 1 to 3600 seconds, not %d", c.Timeout)
	}
	return nil
}

func (c bashSettings) call(ctx context.Context, s *env.Session, a bashArgs) (schemas.Observation, error) {
	if strings.TrimSpace(a.Command) == "" {
		return schemas.Observation{}, tools.NewUserError("The command is empty. Send the command to run, for example \"ls -la\".")
	}
	if a.Timeout == nil && c.Timeout > 0 {
		a.Timeout = &c.Timeout
	}
	limit := timeout(s, a.Timeout)
	sh := env.Local[shell](s)
	r, err := sh.run(ctx, s, a.Command, limit)
	if err != nil {
		return schemas.Observation{}, err
	}
	o := schemas.Observation{FullBytes: r.out.Total}
	// Bash begins its error messages with the name of the command file, which the model does
	// not know. The process IDs of killed programs differ from run to run.
	text := strings.NewReplacer(sh.command()+": ", "bash: ", "bash: eval: ", "bash: ").Replace(r.out.Text())
	if strings.Contains(text, "bash: line ") {
		text = killedBy.ReplaceAllString(text, "$1 $2")
	}
	if r.traced || enablesTrace.MatchString(a.Command) {
		text = tracedLine.ReplaceAllString(text, "$1")
	}
	switch {
	case r.timedOut:
		o.TimedOut, o.IsError, o.ErrorClass = true, true, schemas.ErrTimeout
		text = appendLine(text, fmt.Sprintf("[the command took longer than %s, so it was killed along with every process it had started. "+
			"If it needs more time, set timeout; if it never ends on its own, run it in the background.]", limit))
	default:
		o.ExitCode = &r.exit
		if r.exit != 0 {
			o.IsError, o.ErrorClass = true, schemas.ErrNonzeroExit
			text = appendLine(text, fmt.Sprintf("[exit code %d]", r.exit))
		} else if text == "" {
			text = "[the command succeeded and printed nothing]\n"
		}
	}
	if r.stolen {
		text = appendLine(text, "[another program is reading the shell's output, so some of this command's output may be missing]")
	}
	if r.exited {
		text = appendLine(text, fmt.Sprintf("[the shell exited; the next command runs in a new shell in %s, which keeps exported variables "+
			"but no other variables, functions, aliases, shell options or background jobs]", r.dir))
	}
	o.Text = text
	return o, nil
}

// killedBy matches bash's notice that a signal ended a program.
var killedBy = regexp.MustCompile(`(?m)^(bash: line \d+:) +\d+ ([A-Z][a-z])`)

// tracedLine matches a command that "set -x" prints. Because bash reads each command from a file,
// it prints one more plus sign than in a terminal. enablesTrace matches commands that turn tracing
// on.
var (
	tracedLine   = regexp.MustCompile(`(?m)^\+(\++ )`)
	enablesTrace = regexp.MustCompile(`\bset -[a-z]*x|\bxtrace\b`)
)

func appendLine(text, more string) string {
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text + more + "\n"
}

// bashReset stops the shell at a reset, so that the next episode in the sandbox gets a new one.
func bashReset(ctx context.Context, s *env.Session, e env.Event) (schemas.Observation, error) {
	if e.Kind != env.EventReset {
		return schemas.Observation{}, nil
	}
	sh := env.Local[shell](s)
	err := sh.stop(ctx)
	*sh = shell{}
	return schemas.Observation{}, err
}
