package mcp

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/tools"
)

// Numbers such as B40 in the names of tests are rows of docs/internals/parity.md.

// warnings collects the warnings for the user.
type warnings struct {
	mu    sync.Mutex
	lines []string
	more  chan struct{}
}

func (w *warnings) add(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, text)
	select {
	case w.more <- struct{}{}:
	default:
	}
}

func (w *warnings) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.lines, "\n")
}

func newWarnings() *warnings { return &warnings{more: make(chan struct{}, 1)} }

func deps(w *warnings) Deps {
	return Deps{Getenv: os.Getenv, Warn: w.add, Version: "test"}
}

// program returns the configuration of a server process of the given kind.
func program(t *testing.T, kind string, args ...string) Config {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Config{
		ID: "srv", Command: self, Args: append([]string{"serve", kind}, args...),
		Prefix: "srv__", Timeout: 2 * time.Minute, StartTimeout: 2 * time.Minute,
	}
}

// open opens servers and closes them with the test.
func open(t *testing.T, w *warnings, list ...Config) *tools.Set {
	t.Helper()
	s, err := Open(t.Context(), list, deps(w))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	set, err := tools.NewSet(s.Tools())
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func call(t *testing.T, set *tools.Set, s *env.Session, name, args string) schemas.Observation {
	t.Helper()
	o, err := set.Call(t.Context(), s, schemas.ToolCall{Name: name, Arguments: []byte(args)})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return o
}

func session() *env.Session { return &env.Session{CommandTimeout: 5 * time.Minute} }

func names(set *tools.Set) (out []string) {
	for _, s := range set.Schemas() {
		out = append(out, s.Name)
	}
	return out
}

// Tools of a server, over any transport, have the configured prefix in their names and
// return their results as text.
func TestB40ToolsOfExternalServers(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  func(t *testing.T) Config
	}{
		{"stdio", func(t *testing.T) Config { return program(t, "ordinary") }},
		{"streamable", func(t *testing.T) Config { return address(t, streamable(t), false) }},
		{"sse", func(t *testing.T) Config { return address(t, eventStream(t), true) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWarnings()
			set := open(t, w, c.cfg(t))
			if got := names(set); !slices.IsSorted(got) || !slices.Contains(got, "srv__add") || len(got) != 12 {
				t.Errorf("tools %v", got)
			}
			for _, c := range []struct{ tool, args, want string }{
				{"add", `{"a":"2","b":3,"unit":null}`, "5"},
				{"parts", `{}`, "one\n[image omitted: image/png, 1234 bytes]\ntwo\n[audio omitted: audio/wav, 2 bytes]\n" +
					"[link to resource file:///x, which you cannot open]\n[resource mem://a]\ninside\n[resource mem://b omitted: application/zip, 3 bytes]"},
				{"structured", `{}`, `{"answer":42}`},
				{"empty", `{}`, "The tool returned no output."},
			} {
				o := call(t, set, session(), "srv__"+c.tool, c.args)
				if o.IsError || o.Text != c.want || o.Source != "srv__"+c.tool {
					t.Errorf("%s: %+v, want %q", c.tool, o, c.want)
				}
			}
			for _, c := range []struct{ tool, args, class, want string }{
				{"fails", `{}`, schemas.ErrUserError, "no such issue"},
				{"refuses", `{}`, schemas.ErrUserError, "not allowed"},
				{"add", `{"a":1}`, schemas.ErrBadArguments, `"b" (an integer) is missing`},
				{"add", `{"a":1,"b":2,"unit":"kg"}`, schemas.ErrBadArguments, "enum"},
			} {
				o := call(t, set, session(), "srv__"+c.tool, c.args)
				if !o.IsError || o.ErrorClass != c.class || !strings.Contains(o.Text, c.want) {
					t.Errorf("%s %s: %+v, want %q", c.tool, c.args, o, c.want)
				}
			}
			big := call(t, set, session(), "srv__big", `{"bytes":1000000}`)
			if !big.Truncated || len(big.Text) > tools.MaxText || big.FullBytes != 1_000_000 || !strings.Contains(big.Text, "bytes cut here") {
				t.Errorf("a big answer: truncated %v, %d of %d bytes", big.Truncated, len(big.Text), big.FullBytes)
			}
			if w.String() != "" {
				t.Errorf("warnings: %s", w)
			}
		})
	}
}

// A server that cannot be used makes Open fail with one message that says why. An optional
// one is skipped.
func TestServersThatCannotBeUsed(t *testing.T) {
	for kind, want := range map[string]string{
		"silent":  "no answer within its start_timeout",
		"deaf":    "no answer within its start_timeout",
		"garbage": "connecting",
		"stops":   "the server printed: cannot open /etc/shadow",
		"deep":    "connecting",
		"old":     `unsupported protocol version: "1999-01-01"`,
		"endless": "does not end after",
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := newWarnings()
			cfg := program(t, kind)
			if kind == "silent" || kind == "deaf" {
				cfg.StartTimeout = time.Second
			}
			_, err := Open(t.Context(), []Config{cfg}, deps(w))
			if start, ok := errors.AsType[*StartError](err); !ok || start.ID != "srv" || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "mcp.srv: ") {
				t.Errorf("%v, want %q", err, want)
			}
			cfg.Optional = true
			good := program(t, "ordinary")
			good.ID, good.Prefix, good.Tools = "good", "good__", []string{"add", "par*"}
			if got := names(open(t, w, cfg, good)); !slices.Equal(got, []string{"good__add", "good__parts"}) {
				t.Errorf("tools of the other server: %v", got)
			}
			if !strings.Contains(w.String(), "mcp.srv is skipped: ") || !strings.Contains(w.String(), want) {
				t.Errorf("warnings: %s", w)
			}
		})
	}
	missing := program(t, "ordinary")
	missing.Command = "/no/such/program"
	if _, err := Open(t.Context(), []Config{missing}, deps(newWarnings())); err == nil || !strings.Contains(err.Error(), "/no/such/program") {
		t.Errorf("no program: %v", err)
	}
}

// The limit of a call is the server's timeout or the environment's, whichever is shorter. The
// call is canceled at the server.
func TestCallsAreLimitedAndCanceled(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	cfg := program(t, "ordinary", "", log)
	cfg.Timeout = time.Second
	set := open(t, newWarnings(), cfg)
	o := call(t, set, session(), "srv__hang", `{}`)
	if !o.TimedOut || o.ErrorClass != schemas.ErrTimeout || !strings.Contains(o.Text, "within 1 s") || !strings.Contains(o.Text, "may have executed it") {
		t.Errorf("the server's limit: %+v", o)
	}
	s := session()
	s.CommandTimeout = 500 * time.Millisecond
	if o := call(t, set, s, "srv__hang", `{}`); !strings.Contains(o.Text, "within 0.5 s") {
		t.Errorf("the tool limit: %+v", o)
	}
	// A call that times out before a slow server has begun it is never begun.
	begun := func() int { return strings.Count(read(log), "hang\n") }
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	before := begun()
	go func() { // cancels when the server has started the call
		for ctx.Err() == nil && begun() == before {
			time.Sleep(5 * time.Millisecond)
		}
		cancel()
	}()
	if _, err := set.Call(ctx, session(), schemas.ToolCall{Name: "srv__hang", Arguments: []byte("{}")}); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled step: %v", err)
	}
	waitFor(t, func() bool { n := begun(); return n > 0 && strings.Count(read(log), "hang was cancelled") == n })
	if o := call(t, set, session(), "srv__add", `{"a":1,"b":1}`); o.Text != "2" {
		t.Errorf("the next call: %+v", o)
	}
}

func read(file string) string {
	b, _ := os.ReadFile(file)
	return string(b)
}

// waitFor waits until another process has done something.
func waitFor(t *testing.T, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the condition was not met within a minute")
		}
	}
}

// A call that the server may have executed is not sent again. The next call goes to a new
// process.
func TestDeadServers(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	set := open(t, newWarnings(), program(t, "ordinary", "", log))
	if o := call(t, set, session(), "srv__count", `{}`); o.Text != "1" {
		t.Errorf("%+v", o)
	}
	o := call(t, set, session(), "srv__die", `{}`)
	if !o.IsError || !strings.Contains(o.Text, "may have executed the call, so it was not sent again") {
		t.Errorf("the call during which the server died: %+v", o)
	}
	if n := strings.Count(read(log), "die"); n != 1 {
		t.Errorf("die ran %d times", n)
	}
	if o := call(t, set, session(), "srv__count", `{}`); o.Text != "1" || o.IsError {
		t.Errorf("the call after the restart: %+v", o)
	}
}

// With PerEpisode, each episode has its own server, which ends with the episode and starts
// over at a reset. Other servers are shared.
func TestScopeOfAConnection(t *testing.T) {
	shared, own := program(t, "ordinary"), program(t, "ordinary")
	own.ID, own.Prefix, own.PerEpisode = "own", "own__", true
	set := open(t, newWarnings(), shared, own)
	a, b := session(), session()
	for _, c := range []struct {
		s          *env.Session
		tool, want string
	}{
		{a, "srv__count", "1"}, {b, "srv__count", "2"}, {a, "own__count", "1"}, {b, "own__count", "1"}, {a, "own__count", "2"}, {b, "own__count", "2"},
	} {
		if o := call(t, set, c.s, c.tool, `{}`); o.Text != c.want {
			t.Errorf("%s: %+v, want %s", c.tool, o, c.want)
		}
	}
	if _, err := set.Notify(t.Context(), a, env.Event{Kind: env.EventReset}); err != nil {
		t.Fatal(err)
	}
	if o := call(t, set, a, "own__count", `{}`); o.Text != "1" {
		t.Errorf("after a reset: %+v", o)
	}
	for _, s := range []*env.Session{a, b} {
		if err := env.Local[episodeClients](s).Close(); err != nil {
			t.Error(err)
		}
	}
}

// When an episode is resumed, a shared server does not get its calls again. The episode's
// own server does, which restores its state.
func TestRepeatedCallsHaveNoSecondEffect(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	shared, own := program(t, "ordinary", "", log), program(t, "ordinary", "", log)
	own.ID, own.Prefix, own.PerEpisode = "own", "own__", true
	set := open(t, newWarnings(), shared, own)
	s := session()
	s.Recorded = &schemas.Observation{Text: "7", Source: "srv__count"}
	o, err := set.Call(t.Context(), s, schemas.ToolCall{Name: "srv__count", Arguments: []byte("{}")})
	if err != nil || o.Text != "7" || read(log) != "" {
		t.Errorf("%+v, %v, %s", o, err, read(log))
	}
	o, err = set.Call(t.Context(), s, schemas.ToolCall{Name: "own__count", Arguments: []byte("{}")})
	if err != nil || o.Text != "1" || read(log) != "count\n" {
		t.Errorf("%+v, %v, %s", o, err, read(log))
	}
	if err := env.Local[episodeClients](s).Close(); err != nil {
		t.Error(err)
	}
}

// A change of the tools causes one warning and does not change the run.
func TestChangedToolsCauseAWarning(t *testing.T) {
	for name, cfg := range map[string]Config{"stdio": program(t, "ordinary"), "streamable": address(t, streamable(t), false)} {
		t.Run(name, func(t *testing.T) {
			w := newWarnings()
			set := open(t, w, cfg)
			before := schemas.ShortHash(set.Schemas())
			if o := call(t, set, session(), "srv__change", `{}`); o.Text != "changed" {
				t.Errorf("%+v", o)
			}
			select {
			case <-w.more:
			case <-time.After(time.Minute):
				t.Fatal("there was no warning")
			}
			if !strings.Contains(w.String(), "its tools have changed") || schemas.ShortHash(set.Schemas()) != before {
				t.Errorf("%s, %v", w, names(set))
			}
			if o := call(t, set, session(), "srv__add", `{"a":1,"b":1}`); !o.IsError || !strings.Contains(o.Text, "refused the call") {
				t.Errorf("a tool that is gone: %+v", o)
			}
		})
	}
}

// If a list as a whole cannot be used, the error says what to do. Single tools that cannot
// be used are skipped with a warning.
func TestToolListsThatCannotBeUsed(t *testing.T) {
	for kind, want := range map[string]string{
		"many":  "it offers 10000 tools, more than the limit of 128: choose some with tools:",
		"twins": `its tools "a.b" and "a_b" would both be named srv__a_b`,
		"twice": `its tools "same" and "same" would both be named srv__same`,
	} {
		if _, err := Open(t.Context(), []Config{program(t, kind)}, deps(newWarnings())); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", kind, err, want)
		}
	}
	cfg := program(t, "many")
	cfg.Tools = []string{"t77", "t999?"}
	if got := names(open(t, newWarnings(), cfg)); len(got) != 11 {
		t.Errorf("some of many: %v", got)
	}
	w := newWarnings()
	if got := names(open(t, w, program(t, "mixed"))); !slices.Equal(got, []string{"srv__good"}) {
		t.Errorf("usable tools: %v", got)
	}
	for _, want := range []string{`tool "\x1b]0;x\abad" is skipped: `, `tool "" is skipped: it has no name`, `tool "remote" is skipped: its schema cannot be used: `} {
		if !strings.Contains(w.String(), want) {
			t.Errorf("no warning %q in %s", want, w)
		}
	}
	w = newWarnings()
	none := program(t, "ordinary")
	none.Tools = []string{"nothing*"}
	if got := names(open(t, w, none)); len(got) != 0 || !strings.Contains(w.String(), "offers no tools") {
		t.Errorf("%v, %s", got, w)
	}
}
