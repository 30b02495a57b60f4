package builtin

import (
	"context"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/tools"
)

type pdbArgs struct {
	Command    string  `json:"command" jsonschema:"A pdb command, for example: b src/main.py:42, c, n, s, p order.items, where."`
	Entrypoint *string `json:"entrypoint,omitempty" jsonschema:"Command line of the program to debug, for example: python -m pytest tests/test_cart.py -x. A different one starts a new debugging session. Default: the last one used, initially the task's tests."`
	Timeout    *int    `json:"timeout,omitempty" jsonschema:"Time limit in seconds, 1 to 3600. Omit it to use the default."`
}

type pdbSettings struct {
	tools.Settings
	// Let a call without an entrypoint use the last one, initially the task's; unset = true.
	SetDefaultEntrypoint  *bool `json:"set_default_entrypoint,omitempty"`
	AutoList              *bool `json:"auto_list,omitempty"`              // show the source around the position after each command; unset = true
	PersistentBreakpoints *bool `json:"persistent_breakpoints,omitempty"` // keep breakpoints when the program restarts; unset = true
}

// isOff reports whether a setting whose default is true was set to false.
func isOff(setting *bool) bool { return setting != nil && !*setting }

// describe returns the description of the tool with these settings.
func (c pdbSettings) describe() string {
	shows := "You get pdb's output, the place where the program is stopped, and the source around that line. "
	if isOff(c.AutoList) {
		shows = "You get pdb's output and the place where the program is stopped; l lists the source around that line. "
	}
	kept := "Breakpoints are kept. "
	if isOff(c.PersistentBreakpoints) {
		kept = "Breakpoints are removed when the program is restarted. "
	}
	text := "Send a command to the Python debugger pdb. The session starts with your first command, before " +
		"the first line of the program, and lasts until the program ends. Useful commands:\n" +
		"  b FILE:LINE[, CONDITION] or b FUNCTION  set a breakpoint; b alone lists them; cl FILE:LINE clears one\n" +
		"  c  continue to the next breakpoint, n next line, s step into, r run to the return, unt LINE run to that line\n" +
		"  w  where, u and d move up and down the stack, a arguments, ll source of the function\n" +
		"  p EXPR  print, pp EXPR pretty-print, whatis EXPR, !STATEMENT runs Python\n" +
		"  restart  start the program again from the beginning\n" +
		"Commands on separate lines, or separated by ;;, run one after the other. " + shows + kept +
		"After the program has ended, or after you change a file with the edit tool, the next command " +
		"restarts the program automatically; after you change a file in any other way, send restart."
	if isOff(c.SetDefaultEntrypoint) {
		text += " Every call must give the entrypoint; a different one starts a new session."
	}
	return text
}

func init() {
	register("debug the program with pdb", func(c pdbSettings) (tools.Def[pdbArgs], error) {
		example, required := pdbArgs{Command: "b src/main.py:42"}, []string(nil)
		if isOff(c.SetDefaultEntrypoint) {
			entrypoint := "python -m pytest tests/test_cart.py -x"
			example.Entrypoint, required = &entrypoint, []string{"entrypoint"}
		}
		return tools.Def[pdbArgs]{
			Name: "pdb", Category: "pdb",
			Description: c.describe(),
			Example:     example, Required: required,
			TruncationHint: "print a smaller part, for example with a slice",
			Call:           c.call,
		}, nil
	})
}

func (c pdbSettings) call(ctx context.Context, s *env.Session, a pdbArgs) (schemas.Observation, error) {
	if strings.TrimSpace(a.Command) == "" {
		return schemas.Observation{}, tools.NewUserError("The command is empty. Send a pdb command, for example \"where\" or \"b src/main.py:42\".")
	}
	entrypoint := strings.TrimSpace(schemas.Value(a.Entrypoint))
	if entrypoint == "" && isOff(c.SetDefaultEntrypoint) {
		return schemas.Observation{}, tools.NewUserError("The entrypoint is empty. Give the command line of the program to debug, for example \"python -m pytest tests/test_cart.py -x\".")
	}
	r, err := s.Debugger.Command(ctx, env.DebuggerCommand{
		Text: a.Command, Entrypoint: entrypoint, Timeout: timeout(s, a.Timeout),
		NoListing: isOff(c.AutoList), Forget: isOff(c.PersistentBreakpoints),
	})
	if err != nil {
		return schemas.Observation{}, err
	}
	o := schemas.Observation{Text: r.Text, IsError: r.IsError, TimedOut: r.TimedOut, ExitCode: r.ExitCode, Targets: r.Targets}
	switch {
	case r.TimedOut:
		o.IsError, o.ErrorClass = true, schemas.ErrTimeout
	case r.IsError:
		o.ErrorClass = schemas.ErrUserError
	}
	return o, nil
}

// timeout returns the time limit of a call: seconds, limited to 1 s to 1 h, or the environment's
// limit if seconds is nil.
func timeout(s *env.Session, seconds *int) time.Duration {
	if seconds == nil {
		return s.CommandTimeout
	}
	return time.Duration(min(max(*seconds, 1), 3600)) * time.Second
}
