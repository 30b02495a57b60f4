package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/tracesmith/tracesmith/llms/llmtest"
)

type mockFlags struct {
	listen string
	strict bool
}

func newMock(s *State) *cobra.Command {
	var f mockFlags
	c := &cobra.Command{
		Use: "mock SCRIPT", Short: "Serve a scripted model server",
		Long: `Answer model calls from a script (YAML): sessions of turns with text, reasoning, tool
calls and usage, and faults (errors, delays, broken connections, rate limits). It speaks
the OpenAI chat completions API, streamed too, and Anthropic's Messages API; any client
can talk to it. The base URL is the one line on standard output.

What it was sent is checked: GET /__problems lists what a client did wrong, /__totals
what was asked and billed, /__log every request; POST /__reset forgets them. When it is
stopped it prints the totals and the problems; with --strict any problem makes the exit
code 1. docs/mock.md has every field of a script.`,
		Example:     "  tracesmith mock answers.yaml --listen 127.0.0.1:8080",
		Args:        exactArgs(1, 1),
		Annotations: map[string]string{stoppingText: "ending what is under way"},
		RunE: func(c *cobra.Command, args []string) error {
			script, err := readScript(args[0])
			if err != nil {
				return err
			}
			return f.serve(c.Context(), s, script)
		},
	}
	c.Flags().StringVar(&f.listen, "listen", "127.0.0.1:0", "address; port 0: any free one")
	c.Flags().BoolVar(&f.strict, "strict", false, "exit with code 1 if a client made mistakes")
	return c
}

// maxScript bounds what is read of one script.
const maxScript = 64 << 20

func readScript(file string) (llmtest.Script, error) {
	text, err := readBounded(file, maxScript)
	if err != nil {
		return llmtest.Script{}, Usage(fmt.Errorf("reading the script: %w", err))
	}
	script, err := llmtest.Parse(text)
	if wrong, ok := errors.AsType[*llmtest.ScriptError](err); ok {
		place := file
		if wrong.Line > 0 {
			place = fmt.Sprintf("%s:%d", file, wrong.Line)
		}
		return script, &Error{Code: ExitUsage, Try: "docs/mock.md has every field of a script", Err: fmt.Errorf("%s: %s", place, wrong.Message)}
	}
	return script, err
}

func readBounded(file string, limit int64) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = fmt.Errorf("%s is larger than %d MiB", file, limit>>20)
	}
	return text, err
}

// serve answers until it is stopped, and then gives account.
func (f mockFlags) serve(ctx context.Context, s *State, script llmtest.Script) error {
	srv, err := llmtest.ListenAt(f.listen, script)
	if err != nil {
		return Usage(err)
	}
	fmt.Fprintln(s.Stdout, srv.URL)
	<-ctx.Done() // being stopped is how it ends
	srv.Close()
	t := srv.Totals()
	fmt.Fprintf(s.Stderr, "%d requests, %d answered, %d prompt and %d completion tokens, %d at once at most\n", t.Requests, t.Answered, t.Prompt, t.Completion, t.Peak)
	for _, fault := range slices.Sorted(maps.Keys(t.Faults)) {
		fmt.Fprintf(s.Stderr, "  %d %s\n", t.Faults[fault], fault)
	}
	problems := srv.Problems()
	for _, p := range problems {
		fmt.Fprintf(s.Stderr, "problem: %s\n", p)
	}
	if f.strict && len(problems) > 0 {
		return &Error{Code: ExitBug, Err: fmt.Errorf("the clients made %d mistakes, listed above", len(problems))}
	}
	return nil
}
