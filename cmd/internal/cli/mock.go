package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tracesmith/tracesmith/llms/cassettes"
	"github.com/tracesmith/tracesmith/llms/mock"
)

type mockFlags struct {
	dataFlags
	listen, tls, cassettes, mode, upstream, from, episode string
	speed                                                 float64
	strict                                                bool
}

func newMock(s *State) *cobra.Command {
	var f mockFlags
	c := &cobra.Command{
		Use: "mock SCRIPT | --cassettes DIR | --from DATASET-or-RUN", Short: "Serve a scripted model server",
		Long: `Answer model calls from a script (YAML): sessions of turns with text, reasoning,
tool calls and usage, and faults (errors, delays, broken connections, rate
limits). The server speaks the OpenAI chat completions API and Anthropic's
Messages API, without streaming. Its base URL is the only line on standard
output.

--cassettes plays back what tracesmith record wrote. --from makes the script
from recorded episodes: the same agent on the same task gets the same answers.

The server checks the requests: GET /__problems lists the mistakes of clients,
/__totals counts requests and billed tokens, and /__log lists every request.
POST /__reset clears all of them. When the server stops, it prints the totals
and the problems; with --strict, any problem makes the exit code 1. docs/mock.md
describes every field of a script.`,
		Example: "  tracesmith mock answers.yaml --listen 127.0.0.1:8080\n" +
			"  tracesmith mock --cassettes cassettes --strict\n" +
			"  tracesmith mock --from runs/a --episode stockroom",
		Args:        RangeArgs(0, 1),
		Annotations: map[string]string{StoppingAnnotation: "finishing running requests"},
		RunE: func(c *cobra.Command, args []string) error {
			sources := len(args)
			for _, flag := range []string{f.cassettes, f.from} {
				if flag != "" {
					sources++
				}
			}
			switch {
			case sources != 1:
				return &Error{Code: ExitUsage, Try: "tracesmith mock --help", Err: fmt.Errorf("mock takes one of SCRIPT, --cassettes and --from, got %d", sources)}
			case f.cassettes == "" && (c.Flags().Changed("mode") || c.Flags().Changed("speed") || f.upstream != ""):
				return Usage(errors.New("--mode, --speed and --upstream are for --cassettes"))
			case f.episode != "" && f.from == "":
				return Usage(errors.New("--episode is for --from"))
			case f.cassettes != "":
				return f.servePlayback(c.Context(), s)
			case f.from != "":
				script, err := f.scriptFromEpisodes(c, s)
				if err != nil {
					return err
				}
				return f.serveScript(c.Context(), s, script)
			}
			script, err := readScript(args[0])
			if err != nil {
				return err
			}
			return f.serveScript(c.Context(), s, script)
		},
	}
	f.Add(c)
	c.Flags().StringVar(&f.listen, "listen", "127.0.0.1:0", "address to listen on; port 0 is any free one")
	c.Flags().StringVar(&f.tls, "tls", "", "speak HTTPS; write the certificate that clients must trust (SSL_CERT_FILE) to this `file`")
	c.Flags().BoolVar(&f.strict, "strict", false, "exit with code 1 if a client made mistakes")
	c.Flags().StringVar(&f.cassettes, "cassettes", "", "play back the cassettes of this directory")
	c.Flags().StringVar(&f.mode, "mode", cassettes.Strict, "how to play back: "+strings.Join(cassettes.Modes(), ", "))
	c.Flags().StringVar(&f.upstream, "upstream", "", "with --mode passthrough: base URL to send other requests to and record them")
	c.Flags().Float64Var(&f.speed, "speed", 0, "speed of playback: 0 at once, 1 as recorded, 2 twice as fast")
	c.Flags().StringVar(&f.from, "from", "", "make the script from the episodes of a dataset or run")
	c.Flags().StringVar(&f.episode, "episode", "", "with --from: only this episode (id, prefix or instance id)")
	return c
}

// maxScript is the maximum size of a script in bytes.
const maxScript = 64 << 20

func readScript(file string) (mock.Script, error) {
	text, err := readBounded(file, maxScript)
	if err != nil {
		return mock.Script{}, Usage(fmt.Errorf("reading the script: %w", err))
	}
	script, err := mock.Parse(text)
	if scriptErr, ok := errors.AsType[*mock.ScriptError](err); ok {
		place := file
		if scriptErr.Line > 0 {
			place = fmt.Sprintf("%s:%d", file, scriptErr.Line)
		}
		return script, &Error{Code: ExitUsage, Try: "docs/mock.md describes every field of a script", Err: fmt.Errorf("%s: %s", place, scriptErr.Message)}
	}
	return script, err
}

// readBounded reads a file of at most limit bytes.
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

// serveScript answers from a script until the command is stopped, then prints the totals and
// the clients' mistakes.
func (f mockFlags) serveScript(ctx context.Context, s *State, script mock.Script) error {
	h := mock.NewHandler(script)
	if err := serveUntilStopped(ctx, s, f.listen, "/v1", f.tls, h); err != nil {
		return err
	}
	t := h.Totals()
	fmt.Fprintf(s.Stderr, "%d requests, %d answered, %d prompt and %d completion tokens, %d at once at most\n", t.Requests, t.Answered, t.Prompt, t.Completion, t.Peak)
	for _, fault := range slices.Sorted(maps.Keys(t.Faults)) {
		fmt.Fprintf(s.Stderr, "  %d %s\n", t.Faults[fault], fault)
	}
	return f.reportProblems(s, h.Problems())
}

// servePlayback answers from cassettes until the command is stopped, then prints the totals
// and the clients' mistakes.
func (f mockFlags) servePlayback(ctx context.Context, s *State) error {
	sessions, warnings, err := cassettes.Load(f.cassettes)
	if err != nil {
		return Usage(err)
	}
	for _, warning := range warnings {
		fmt.Fprintf(s.Stderr, "warning: %s\n", warning)
	}
	var upstream http.Handler
	path := cassettes.BasePath(sessions)
	if f.mode == cassettes.Passthrough && f.upstream != "" {
		if upstream, err = cassettes.NewRecorder(f.cassettes, f.upstream, nil); err != nil {
			return Usage(err)
		}
		path = pathOf(f.upstream)
	}
	p, err := cassettes.NewPlayer(sessions, f.mode, f.speed, upstream)
	if err != nil {
		return Usage(err)
	}
	if err := serveUntilStopped(ctx, s, f.listen, path, f.tls, p); err != nil {
		return err
	}
	played, passed := p.Wait()
	fmt.Fprintf(s.Stderr, "%d exchanges played back, %d passed on\n", played, passed)
	return f.reportProblems(s, p.Problems())
}

// reportProblems prints the clients' mistakes. With --strict, it returns an error if there
// are any.
func (f mockFlags) reportProblems(s *State, problems []string) error {
	for _, p := range problems {
		fmt.Fprintf(s.Stderr, "problem: %s\n", p)
	}
	if f.strict && len(problems) > 0 {
		return &Error{Code: ExitFailure, OverridesSignal: true, Err: fmt.Errorf("the clients made %s, listed above", count(len(problems), "mistake"))}
	}
	return nil
}

// scriptFromEpisodes makes a script from the model's answers in the episodes of --from, or
// only in those that --episode names.
func (f mockFlags) scriptFromEpisodes(c *cobra.Command, s *State) (mock.Script, error) {
	var script mock.Script
	data, err := f.open(c, s, f.from)
	if err != nil {
		return script, err
	}
	defer func() { _ = data.Close() }()
	for t, err := range data.Trajectories(c.Context()) {
		if err != nil {
			return script, Usage(err)
		}
		if f.episode == "" || matches(f.episode, t.Episode.EpisodeID, t.Episode.InstanceID) {
			for _, session := range mock.FromEpisode(t.Episode, t.Steps) {
				if slices.ContainsFunc(script.Sessions, func(o mock.Session) bool { return o.User == session.User }) {
					fmt.Fprintf(s.Stderr, "left out: episode %s begins like another one; name one with --episode\n", t.Episode.EpisodeID[:12])
					continue
				}
				script.Sessions = append(script.Sessions, session)
			}
		}
	}
	if len(script.Sessions) == 0 {
		return script, &Error{Code: ExitUsage, Try: shell("tracesmith", "show", f.from), Err: fmt.Errorf("no episode in %s matches and has answers of a model", f.from)}
	}
	return script, nil
}
