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

// Bounds of the search for leaks.
const (
	leakTimeout = 15 * time.Minute // usually seconds; generous, because a task without this check has no verdict
	maxLeaks    = 50
)

// leaks searches for what only the gold patch adds, everywhere an agent could find it: in the task's
// text, and in a sandbox outside of the visible files of the repository.
func (c *checker) leaks(ctx context.Context, sb env.Sandbox, t schemas.Task) (finding, error) {
	if c.task.GoldPatch == "" {
		return finding{}, nil
	}
	secret, err := c.secrets(ctx)
	if err != nil {
		return finding{}, err
	}
	c.rep.Tokens = len(secret.Words) + len(secret.Texts) + len(secret.Lines)
	if published(t) {
		c.rep.Quoted = secret.quoted(t.Instructions)
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
	found, err := c.search(ctx, sb, t, secret)
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
	return leaking(c.rep.Leaks), nil
}

// published reports whether the text of a task comes from a public dataset. What it reveals is known
// to everyone who works on the dataset.
func published(t schemas.Task) bool {
	return t.Origin != nil && t.Origin.UpstreamRepo != "" && t.Origin.ParentTreeSHA256 == ""
}

// checkText searches text that an agent gets.
func (c *checker) checkText(place, text string, secret secrets) {
	if token, kind := secret.in(text); token != "" {
		c.rep.Leaks = append(c.rep.Leaks, Leak{Place: place, Token: token, Kind: kind, From: FromTask})
	}
}

// owner says to whom a path of the sandbox belongs.
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

// leaking makes a finding of leaks. A leak in the task's own files matters most.
func leaking(leaks []Leak) finding {
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

// search runs the program that searches the sandbox.
func (c *checker) search(ctx context.Context, sb env.Sandbox, t schemas.Task, secret secrets) ([]Leak, error) {
	order := struct {
		secrets
		Workdir string   `json:"workdir"`
		Roots   []string `json:"roots"`
	}{secret, t.Workdir, []string{"/"}}
	if c.Driver.Name() == "local" {
		order.Roots = nil // the agent can read the whole machine there: search its module path at least
	}
	input, err := json.Marshal(order)
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

// readLeaks reads the findings of the program; done is true if the program finished.
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

func clip(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) > 200 {
		s = strings.ToValidUTF8(s[:200], "") + "…"
	}
	return s
}
