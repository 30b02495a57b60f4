package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tracesmith/tracesmith/cmd/internal/viewer"
	"github.com/tracesmith/tracesmith/cmd/internal/wire"
	"github.com/tracesmith/tracesmith/pipeline/selection"
)

type viewFlags struct {
	dataFlags
	listen, export, expr, episode string
	gold, notes                   bool
}

func newView(s *State) *cobra.Command {
	var f viewFlags
	c := &cobra.Command{
		Use: "view DATASET-or-RUN..", Short: "Show episodes in a web browser, or write them to one HTML file",
		Long: "Serve a web viewer for one or more datasets and runs: a list with filters,\n" +
			"search and facets; each episode as a conversation with the state of the\n" +
			"debugger; training samples; statistics; comparisons of two places. The pages of\n" +
			"a run follow it while it is in progress. The address is the only line on\n" +
			"standard output.\n\n" +
			"The viewer answers only this machine. If --listen names another address than\n" +
			"loopback, readers need the token in the printed address.\n\n" +
			"--export writes a file that needs neither a server nor a network, to share. It\n" +
			"leaves out your marks and notes, except with --notes.",
		Example: "  tracesmith view out/quickstart/dataset\n" +
			"  tracesmith view runs/a runs/b -e 'outcome == \"limit\"'\n" +
			"  tracesmith view runs/a --episode stockroom --export stockroom.html",
		Args:        RangeArgs(1, -1),
		Annotations: map[string]string{StoppingAnnotation: "closing the viewer"},
		RunE:        func(c *cobra.Command, args []string) error { return f.run(c, s, args) },
	}
	f.Add(c)
	c.Flags().StringVar(&f.listen, "listen", "127.0.0.1:0", "address to listen on, HOST:PORT or :PORT for loopback; port 0 is any free one")
	c.Flags().StringVar(&f.export, "export", "", "write one HTML `file` instead of serving")
	c.Flags().StringVarP(&f.expr, "expr", "e", "", "show or export only the episodes that an expression keeps, as in filter -e")
	c.Flags().BoolVar(&f.gold, "gold", false, "also show gold patches, read from the source of the run's tasks or, for a dataset, from tasks.source")
	c.Flags().BoolVar(&f.notes, "notes", false, "also export your marks and notes")
	c.Flags().StringVar(&f.episode, "episode", "", "show or export only this episode (id, prefix or instance id)")
	return c
}

func (f *viewFlags) run(c *cobra.Command, s *State, places []string) error {
	address, token, err := viewAddress(f.listen)
	if err != nil {
		return err
	}
	var open []viewer.Opener
	gold := map[string]string{}
	for _, place := range places {
		cfg, err := f.config(s)
		if err != nil {
			return err
		}
		if f.gold {
			patches, err := wire.GoldPatches(c.Context(), place, cfg.Tasks)
			if err != nil {
				return Usage(fmt.Errorf("--gold: %w", err))
			}
			maps.Copy(gold, patches)
		}
		open = append(open, func(ctx context.Context) (*wire.Data, error) { return wire.OpenData(ctx, place, cfg.S3) })
	}
	server, err := viewer.New(c.Context(), open, token)
	if err != nil {
		return Usage(err)
	}
	defer server.Close()
	if f.gold {
		server.ShowGold(gold)
	}
	if f.export != "" {
		return f.write(c.Context(), s, server)
	}
	path, err := f.startPage(server)
	if err != nil {
		return err
	}
	if token != "" {
		fmt.Fprintln(s.Stderr, "warning: anyone who has this address can read these episodes; the connection is not encrypted")
		separator := "?"
		if strings.Contains(path, "?") {
			separator = "&"
		}
		path += separator + "token=" + token
	}
	return serveUntilStopped(c.Context(), s, address, path, "", server)
}

// viewAddress returns the address to listen on, and a token if other machines can reach it.
func viewAddress(listen string) (address, token string, err error) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "", "", Usage(fmt.Errorf("--listen %s: write HOST:PORT, or :PORT for loopback", listen))
	}
	address = net.JoinHostPort(cmp.Or(host, "127.0.0.1"), port)
	resolved, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return "", "", Usage(fmt.Errorf("--listen %s: %w", listen, err))
	}
	if !resolved.IP.IsLoopback() {
		token = viewer.NewToken()
	}
	return address, token, nil
}

// startPage returns the path and query of the first page.
func (f *viewFlags) startPage(server *viewer.Server) (string, error) {
	switch {
	case f.episode != "":
		found := server.Find(f.episode)
		if len(found) == 0 {
			return "", f.noEpisode()
		}
		return found[0], nil
	case f.expr != "":
		if _, err := selection.FromExpr(f.expr); err != nil {
			return "", Usage(err)
		}
		return "/?" + url.Values{"e": {f.expr}}.Encode(), nil
	}
	return "/", nil
}

func (f *viewFlags) noEpisode() error {
	return Usage(fmt.Errorf("no episode %q: tracesmith show lists them", f.episode))
}

// write exports to a new file. If it fails, it leaves no partial file.
func (f *viewFlags) write(ctx context.Context, s *State, server *viewer.Server) error {
	if f.episode != "" && len(server.Find(f.episode)) == 0 {
		return f.noEpisode()
	}
	file, err := os.OpenFile(f.export, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, os.ErrExist) {
		return Usage(fmt.Errorf("%s exists: choose another --export", f.export))
	}
	if err != nil {
		return Usage(fmt.Errorf("creating the exported file: %w", err))
	}
	live := newLiveLine(s)
	n, err := server.Export(ctx, file, viewer.Export{Expr: f.expr, Episode: f.episode, Notes: f.notes, Progress: func(done, total int) {
		live.show("reading episode %d of %d", done+1, total)
	}})
	live.erase()
	if err = errors.Join(err, file.Close()); err != nil {
		_ = os.Remove(f.export)
		return Usage(err)
	}
	fmt.Fprintf(s.Stdout, "%s: %s\n", f.export, count(n, "episode"))
	return nil
}
