package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/tracesmith/tracesmith/llms/llmtest"
)

func newMock(s *State) *cobra.Command {
	var listen string
	c := &cobra.Command{
		Use: "mock SCRIPT", Short: "Serve a scripted model server",
		Long: `Answer model calls from a script (YAML): sessions of turns with text, reasoning, tool
calls and usage, and faults (errors, delays, broken connections, rate limits). It speaks
the OpenAI chat completions API, streamed too, and Anthropic's Messages API; any client
can talk to it. The base URL is the one line on standard output.

What it was sent is checked: GET /__problems lists what a client did wrong, /__totals
what was asked and billed, /__log every request; POST /__reset forgets them. When it is
stopped it prints the totals; the exit code is 1 if there were problems.`,
		Example: "  tracesmith mock answers.yaml --listen 127.0.0.1:8080",
		Args:    exactArgs(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			return mock(c.Context(), s, args[0], listen)
		},
	}
	c.Flags().StringVar(&listen, "listen", "127.0.0.1:0", "address; port 0: any free one")
	return c
}

func mock(ctx context.Context, s *State, file, listen string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return Usage(fmt.Errorf("reading the script: %w", err))
	}
	script, err := llmtest.Parse(text)
	if err != nil {
		return Usage(fmt.Errorf("%s: %w", file, err))
	}
	srv, err := llmtest.ListenAt(listen, script)
	if err != nil {
		return Usage(err)
	}
	fmt.Fprintln(s.Stdout, srv.URL)
	<-ctx.Done() // being stopped is how it ends
	srv.Close()
	t := srv.Totals()
	fmt.Fprintf(s.Stderr, "%d requests, %d answered, %d prompt and %d completion tokens, %d at once at most\n", t.Requests, t.Answered, t.Prompt, t.Completion, t.Peak)
	for fault, n := range t.Faults {
		fmt.Fprintf(s.Stderr, "  %d %s\n", n, fault)
	}
	problems := srv.Problems()
	for _, p := range problems {
		fmt.Fprintf(s.Stderr, "problem: %s\n", p)
	}
	if len(problems) > 0 {
		return &Error{Code: ExitBug, Err: errors.New("the clients made mistakes, listed above")}
	}
	return nil
}
