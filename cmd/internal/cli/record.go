package cli

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tracesmith/tracesmith/llms/cassettes"
)

func newRecord(s *State) *cobra.Command {
	var to, upstream, listen string
	c := &cobra.Command{
		Use: "record --to DIR --upstream URL", Short: "Record the calls to a model server, for playback",
		Long: `Run a proxy between clients and a model server that writes every exchange to a
cassette: JSON lines, one file per session, with the bytes and the time of each
piece of the answer. Clients use the base URL on standard output instead of the
server's, with their own key.

The proxy leaves out keys, cookies and other headers that carry secrets, and
replaces their values by asterisks wherever else they occur. It writes prompts
and answers as they are. tracesmith mock --cassettes DIR plays cassettes back.`,
		Example:     "  tracesmith record --to cassettes --upstream https://api.openai.com/v1",
		Args:        RangeArgs(0, 0),
		Annotations: map[string]string{StoppingAnnotation: "waiting for running exchanges"},
		RunE: func(c *cobra.Command, _ []string) error {
			if to == "" || upstream == "" {
				return &Error{Code: ExitUsage, Try: "tracesmith record --help", Err: fmt.Errorf("record needs --to DIR and --upstream URL")}
			}
			r, err := cassettes.NewRecorder(to, upstream, nil)
			if err != nil {
				return Usage(err)
			}
			if err := serveUntilStopped(c.Context(), s, listen, pathOf(upstream), "", r); err != nil {
				return err
			}
			n, err := r.Wait()
			fmt.Fprintf(s.Stderr, "%d exchanges recorded in %s\n", n, to)
			if err != nil {
				return &Error{Code: ExitUsage, OverridesSignal: true, Try: "free some space, and record again", Err: err}
			}
			return nil
		},
	}
	c.Flags().StringVar(&to, "to", "", "directory of the cassettes; it may already contain some")
	c.Flags().StringVar(&upstream, "upstream", "", "base URL of the model server")
	c.Flags().StringVar(&listen, "listen", "127.0.0.1:0", "address to listen on; port 0 is any free one")
	return c
}

func pathOf(base string) string {
	u, err := url.Parse(base)
	if err != nil {
		return ""
	}
	return strings.TrimRight(u.Path, "/")
}
