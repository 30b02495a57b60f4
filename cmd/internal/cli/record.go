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
		Use: "record --to DIR --upstream URL", Short: "Record what goes to a model server, to be played back",
		Long: `Stand between clients and a model server, and write every exchange to a cassette: JSON
lines, one file per session, with the bytes and the time of every piece of the answer.
Clients use the base URL on standard output in place of the server's, with their own key.

Keys, cookies and what else stands in headers that carry secrets are left out, and their
values are starred out wherever else they occur. Prompts and answers are written as they
are. Play cassettes back with tracesmith mock --cassettes DIR.`,
		Example:     "  tracesmith record --to cassettes --upstream https://api.openai.com/v1 --listen 127.0.0.1:8080",
		Args:        ExactArgs(0, 0),
		Annotations: map[string]string{StoppingText: "waiting for exchanges under way"},
		RunE: func(c *cobra.Command, _ []string) error {
			if to == "" || upstream == "" {
				return &Error{Code: ExitUsage, Try: "tracesmith record --help", Err: fmt.Errorf("record needs --to DIR and --upstream URL")}
			}
			r, err := cassettes.NewRecorder(to, upstream, nil)
			if err != nil {
				return Usage(err)
			}
			if err := serveModels(c.Context(), s, listen, pathOf(upstream), "", r); err != nil {
				return err
			}
			n, err := r.Wait()
			fmt.Fprintf(s.Stderr, "%d exchanges recorded in %s\n", n, to)
			if err != nil {
				return &Error{Code: ExitUsage, Stands: true, Try: "make room, and record again", Err: err}
			}
			return nil
		},
	}
	c.Flags().StringVar(&to, "to", "", "directory of the cassettes; it is made, and added to")
	c.Flags().StringVar(&upstream, "upstream", "", "base URL of the model server")
	c.Flags().StringVar(&listen, "listen", "127.0.0.1:0", "address; port 0: any free one")
	return c
}

// pathOf is the path of a base URL.
func pathOf(base string) string {
	u, err := url.Parse(base)
	if err != nil {
		return ""
	}
	return strings.TrimRight(u.Path, "/")
}
