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
	Command    string  `json:"command" jsonschema:"One pdb command, for example: b src/main.py:42, c, n, s, p order.items, where."`
	Entrypoint *string `json:"entrypoint,omitempty" jsonschema:"Command line of the program to debug, for example: python -m pytest tests/test_cart.py -x. Another one than before starts a new debugging session. Default: the one used last, at first the task's tests."`
	Timeout    *int    `json:"timeout,omitempty" jsonschema:"Seconds the command may take, 1 to 3600. Leave it out for the default."`
}

type pdbSettings struct{ tools.Settings }

func init() {
	register("debug the program with pdb", func(pdbSettings) (tools.Def[pdbArgs], error) {
		return tools.Def[pdbArgs]{
			Name: "pdb", Category: "pdb",
			Description: "Send one command to the Python debugger pdb. The session starts with the first command, before " +
				"the first line of the program, and lives until the program ends. Useful commands:\n" +
				"  b FILE:LINE[, CONDITION] or b FUNCTION  set a breakpoint; b alone lists them; cl FILE:LINE clears one\n" +
				"  c  continue to the next breakpoint, n next line, s step into, r run to the return, unt LINE\n" +
				"  w  where, u and d move up and down the stack, a arguments, ll source of the function\n" +
				"  p EXPR  print, pp EXPR pretty-print, whatis EXPR, !STATEMENT runs Python\n" +
				"  restart  begin again from the start\n" +
				"The answer shows pdb's output, where the program stands now, and the source around that line. " +
				"Breakpoints are kept. After the program has ended, or the edit tool has changed a file, the next command " +
				"starts the program again by itself; after changing a file in another way, send restart.",
			Example: pdbArgs{Command: "b src/main.py:42"},
			More:    "print a smaller part, for example with a slice",
			Call:    pdb,
		}, nil
	})
}

func pdb(ctx context.Context, s *env.Session, a pdbArgs) (schemas.Observation, error) {
	if strings.TrimSpace(a.Command) == "" {
		return schemas.Observation{}, tools.Mistake("The command is empty. Send one pdb command, for example \"where\" or \"b src/main.py:42\".")
	}
	entrypoint := ""
	if a.Entrypoint != nil {
		entrypoint = strings.TrimSpace(*a.Entrypoint)
	}
	r, err := s.Debugger.Command(ctx, a.Command, entrypoint, timeout(s, a.Timeout))
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

// timeout is what a call may take: the model's own word within 1 s and 1 h, or
// the environment's.
func timeout(s *env.Session, seconds *int) time.Duration {
	if seconds == nil {
		return s.CommandTimeout
	}
	return time.Duration(min(max(*seconds, 1), 3600)) * time.Second
}
