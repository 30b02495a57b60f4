package check

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
)

//go:embed leak.py
var leakProgram string

// Limits of the search for leaks.
const (
	leakTimeout = 15 * time.Minute // the search usually takes seconds, but without it the check fails
	maxLeaks    = 50
)

// findLeaks searches for content that only the gold patch adds, wherever an agent could find it: in the task's text, in
// the repository and in the rest of the sandbox.
func (c *checker) findLeaks(ctx context.Context, sb env.Sandbox, t schemas.Task) (finding, error) {
	if c.task.GoldPatch == "" {
		return finding{}, nil
	}
	secret, err := c.secrets(ctx)
	if err != nil {
		return finding{}, err
	}
	c.rep.Tokens = len(secret.Words) + len(secret.Texts) + len(secret.Lines)
	if published(t) {
		c.rep.Quoted = secret.takeQuoted(t.Instructions)
	} else {
		c.checkText(textPlace, t.Instructions, secret)
	}
	c.checkText("entrypoint", t.Entrypoint, secret)
	c.checkText("debug entrypoint", t.DebugEntrypoint, secret)
	c.checkText("set-up commands", strings.Join(t.Setup, "\n"), secret)
	c.checkText("image", t.Image, secret)
	c.lintText(t, secret)
	if err := c.searchRepository(ctx, t.Workdir, secret); err != nil {
		return finding{}, fmt.Errorf("looking for leaks in the repository: %w", err)
	}
	found, err := c.searchSandbox(ctx, sb, t, secret)
	if err != nil {
		return finding{}, err
	}
	for _, l := range found {
		if slices.ContainsFunc(c.rep.Leaks, func(k Leak) bool { return k.Place == l.Place && k.Kind == l.Kind }) {
			continue
		}
		l.From = c.owner(l.Place, t)
		c.rep.Leaks = append(c.rep.Leaks, l)
	}
	return leakFinding(c.rep.Leaks), nil
}

// published reports whether the text of a task comes from a public dataset, so that all it reveals is already public.
func published(t schemas.Task) bool {
	return t.Origin != nil && t.Origin.UpstreamRepo != "" && t.Origin.ParentTreeSHA256 == ""
}

// checkText searches a text that agents get.
func (c *checker) checkText(place, text string, secret secrets) {
	if token, kind := secret.find(text); token != "" {
		c.rep.Leaks = append(c.rep.Leaks, Leak{Place: place, Token: token, Kind: kind, From: FromTask})
	}
}

// owner returns where a path in the sandbox comes from, as a value of Leak.From.
func (c *checker) owner(place string, t schemas.Task) string {
	below := func(dir string) bool {
		return place == dir || strings.HasPrefix(place, strings.TrimSuffix(dir, "/")+"/")
	}
	switch {
	case strings.Contains(place, "/pip/_vendor/"):
		return FromPip
	case !strings.HasPrefix(place, "/"), c.Driver != nil && c.Driver.Name() != "bubblewrap" && t.Image+c.Spec.Image != "", below(t.Workdir), below("/proc"),
		slices.ContainsFunc(c.Spec.Mounts, func(m env.Mount) bool { return below(m.Path) }):
		return FromTask
	}
	return FromHost
}

// leakFinding returns the finding for a list of leaks. A leak in the task's own files matters most.
func leakFinding(leaks []Leak) finding {
	if len(leaks) == 0 {
		return finding{}
	}
	status, first := Exposed, leaks[0]
	if i := slices.IndexFunc(leaks, func(l Leak) bool { return l.From == FromTask }); i >= 0 {
		status, first = Leaking, leaks[i]
	}
	return finding{status, fmt.Sprintf("%d %s, the first: %s", len(leaks), plural(len(leaks)), first)}
}

func plural(n int) string {
	if n == 1 {
		return "place"
	}
	return "places"
}

// searchSandbox runs leak.py in the sandbox.
func (c *checker) searchSandbox(ctx context.Context, sb env.Sandbox, t schemas.Task, secret secrets) ([]Leak, error) {
	request := struct {
		secrets
		Workdir string   `json:"workdir"`
		Roots   []string `json:"roots"`
	}{secret, t.Workdir, []string{"/"}}
	if c.Driver.Name() == "local" {
		request.Roots = nil // agents can read the whole machine: search only Python's module path
	}
	input, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	res, err := sb.Run(ctx, env.Command{
		Args: []string{"python3", "-I", "-c", leakProgram}, Dir: t.Workdir, Stdin: input, Timeout: leakTimeout, MaxOutput: 1 << 20,
	})
	if err != nil {
		return nil, fmt.Errorf("looking for leaks: %w", err)
	}
	leaks, done := readLeaks(res.Output)
	if !done {
		last := strings.ToValidUTF8(string(res.Output[max(0, len(res.Output)-300):]), "\uFFFD")
		return nil, fmt.Errorf("looking for leaks: the search ended early (exit code %d): %s", res.ExitCode, strings.TrimSpace(last))
	}
	return leaks, nil
}

// readLeaks reads the findings of leak.py. done is true if the program finished.
func readLeaks(out []byte) (leaks []Leak, done bool) {
	for line := range bytes.Lines(out) {
		var l struct {
			Leak
			Done bool `json:"done"`
		}
		if json.Unmarshal(line, &l) != nil {
			continue
		}
		done = done || l.Done
		if !l.Done && l.Place != "" && len(leaks) < maxLeaks {
			l.Place, l.Token = clip(l.Place), clip(l.Token)
			leaks = append(leaks, l.Leak)
		}
	}
	slices.SortFunc(leaks, func(a, b Leak) int {
		return strings.Compare(a.Place+"\x00"+a.Kind, b.Place+"\x00"+b.Kind)
	})
	return leaks, done
}

// clip shortens a string to about 200 bytes of valid UTF-8.
func clip(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) > 200 {
		s = strings.ToValidUTF8(s[:200], "") + "…"
	}
	return s
}
