package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tracesmith/tracesmith/cmd/internal/wire"
	"github.com/tracesmith/tracesmith/pipeline/preflight"
)

func newDoctor(s *State) *cobra.Command {
	var f ConfigFlags
	var noCanary, asJSON bool
	c := &cobra.Command{
		Use: "doctor", Short: "Check whether runs can work on this machine",
		Long: `Check every part of a configuration: free disk space, a sandbox and the debugger
in it, Python versions, model servers, stores and the NATS cluster. Each check
is ok, a warning or failed, and says what to do.

Each configured model gets one call with a tool and at most ` + fmt.Sprint(preflight.CanaryTokens) + ` tokens of answer;
its cost is printed. Nothing else costs anything, and nothing is left behind.`,
		Example: "  tracesmith doctor\n  tracesmith doctor -c my.yaml --no-canary",
		Args:    RangeArgs(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := f.Load(s)
			if err != nil {
				return err
			}
			var report checkReport
			if !asJSON {
				report.out = s.Stdout
			}
			host := wire.Host{Getenv: s.Getenv, Environ: s.Environ, Warn: s.Stderr, Version: Version}
			wire.Doctor(c.Context(), cfg, host, !noCanary, report.add)
			if err := c.Context().Err(); err != nil {
				return err
			}
			if asJSON {
				if err := PrintJSON(s, map[string]any{"schema": "tracesmith.doctor/1", "checks": report.results, "exit_code": report.exitCode()}); err != nil {
					return err
				}
			} else {
				fmt.Fprintln(s.Stdout, report.verdict())
			}
			return report.err()
		},
	}
	f.Add(c)
	f.AddSandbox(c, "")
	c.Flags().BoolVar(&noCanary, "no-canary", false, "make no call to a model, which may cost money")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// checkReport collects the results of checks, and prints each one at once if out is set.
type checkReport struct {
	out     io.Writer
	results []preflight.Result
}

func (r *checkReport) add(result preflight.Result) {
	r.results = append(r.results, result)
	if r.out == nil {
		return
	}
	const indent = 19 // of the message
	fmt.Fprintf(r.out, "%-8s %-9s %s", result.Status, result.Check, strings.TrimLeft(wrap(result.Message, indent), " "))
	if result.Remedy != "" {
		fmt.Fprint(r.out, wrap("try: "+result.Remedy, indent))
	}
}

// count returns the number of results with a status.
func (r *checkReport) count(status preflight.Status) (n int) {
	for _, result := range r.results {
		if result.Status == status {
			n++
		}
	}
	return n
}

func (r *checkReport) verdict() string {
	return fmt.Sprintf("%s: %d ok, %s, %d failed", count(len(r.results), "check"), r.count(preflight.OK), count(r.count(preflight.Warning), "warning"), r.count(preflight.Failed))
}

// exitCode returns ExitAuth if the only failures are missing or refused credentials, and
// ExitPreflight if anything else failed.
func (r *checkReport) exitCode() int {
	code := ExitOK
	for _, result := range r.results {
		switch {
		case result.Status != preflight.Failed:
		case CodeOf(result.Err) != ExitAuth:
			return ExitPreflight
		default:
			code = ExitAuth
		}
	}
	return code
}

// err returns an error with the exit code if a check failed. The results already say why.
func (r *checkReport) err() error {
	if code := r.exitCode(); code != ExitOK {
		return silentExit{code}
	}
	return nil
}
