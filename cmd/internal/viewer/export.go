package viewer

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/DataDog/datadog-agent/pkg/template/html"

	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// Limits of an exported file, because browsers need minutes for much larger ones. Every episode has
// hundreds of elements besides its steps.
const (
	maxExport         = 64 << 20 // bytes of text
	maxExportEpisodes = 500
	maxExportSteps    = 10_000
)

// Export says what an exported file contains.
type Export struct {
	Expr     string                // only the episodes that it keeps; "" for all
	Episode  string                // only those that it stands for, as in Find; "" for all
	Notes    bool                  // also the marks and notes
	Progress func(done, total int) // called before each episode; may be nil
}

// exportPage is one file with everything in it.
type exportPage struct {
	page
	Lines    []lineView
	Episodes []*episodePage
}

// Find returns the addresses of the episodes that name stands for: an id, a prefix of one with at
// least 4 characters, or the instance id of a task.
func (s *Server) Find(name string) []string {
	var found []string
	for _, p := range s.places {
		for _, e := range p.entries {
			if e.row != nil && e.named(name) {
				found = append(found, fmt.Sprintf("/t/%d/%s", p.number, e.id))
			}
		}
	}
	return found
}

func (e *entry) named(name string) bool {
	return name == e.id || name == e.row.InstanceID || len(name) >= 4 && strings.HasPrefix(e.id, name)
}

// Export writes one HTML file with episodes. The file loads nothing: its policy permits only its own
// style sheet and script, by their hashes. Export returns the number of episodes.
func (s *Server) Export(ctx context.Context, w io.Writer, x Export) (int, error) {
	unlock, err := s.refresh(ctx)
	if err != nil {
		return 0, err
	}
	defer unlock()
	chosen, err := s.chosen(ctx, x)
	if err != nil {
		return 0, err
	}
	v := &exportPage{page: s.page("Episodes", "export")}
	size := 0
	for _, p := range s.places {
		for t, err := range p.trajectories(ctx, chosen) {
			if err != nil {
				return 0, err
			}
			if size += textBytes(t.Steps); size > maxExport {
				return 0, fmt.Errorf("the episodes have more than %s of text, which is too much for one file: choose some with -e or --episode", bytesText(maxExport))
			}
			if x.Progress != nil {
				x.Progress(len(v.Episodes), len(chosen))
			}
			v.add(s, p.episodes[t.Episode.EpisodeID], t, x.Notes)
		}
	}
	if err := v.inline(); err != nil {
		return 0, err
	}
	body, err := render("export", v)
	if err != nil {
		return 0, err
	}
	if _, err := w.Write(body); err != nil {
		return 0, fmt.Errorf("writing the exported file: %w", err)
	}
	return len(v.Episodes), nil
}

// chosen returns the entries to export. It returns an error if a browser could not show that many.
func (s *Server) chosen(ctx context.Context, x Export) ([]*entry, error) {
	found, err := find(ctx, s.places, query{Expr: x.Expr})
	if err != nil {
		return nil, err
	}
	var out []*entry
	steps := 0
	for _, e := range found {
		if e.row != nil && (x.Episode == "" || e.named(x.Episode)) {
			out = append(out, e)
			steps += int(e.row.NSteps)
		}
	}
	switch {
	case len(out) == 0:
		return nil, errors.New("no episode matches: nothing to export")
	case len(out) > maxExportEpisodes || len(out) > 1 && steps > maxExportSteps:
		return nil, fmt.Errorf("%s with %s are too much for one file, which holds at most %s and %s: choose fewer with -e or --episode",
			plural(len(out), "episode"), plural(steps, "step"), plural(maxExportEpisodes, "episode"), plural(maxExportSteps, "step"))
	}
	return out, nil
}

// trajectories streams the whole episodes of those entries that belong to p.
func (p *place) trajectories(ctx context.Context, entries []*entry) iter.Seq2[sinks.Trajectory, error] {
	var rows []schemas.EpisodeRow
	for _, e := range entries {
		if e.place == p {
			rows = append(rows, *e.row)
		}
	}
	if p.data.Dataset != nil && 20*len(rows) > len(p.entries) { // reading all is faster
		return p.data.TrajectoriesOf(ctx, rows)
	}
	return func(yield func(sinks.Trajectory, error) bool) {
		for _, row := range rows {
			if t, err := p.data.Trajectory(ctx, row); !yield(t, err) || err != nil {
				return
			}
		}
	}
}

// add adds an episode with its line in the list.
func (v *exportPage) add(s *Server, e *entry, t sinks.Trajectory, notes bool) {
	anchor := fmt.Sprintf("e%d-", len(v.Episodes)+1)
	line := e.line()
	line.Link = "#" + anchor + "top"
	if !notes {
		line.Mark, line.Note = "", ""
	}
	v.Lines = append(v.Lines, line)
	page := s.episode(e.place, t, anchor, "")
	page.Mark.Mark, page.Mark.Note = line.Mark, line.Note
	v.Episodes = append(v.Episodes, page)
	if len(v.Episodes) == 1 {
		v.Title = page.Task
	} else {
		v.Title = plural(int64(len(v.Episodes)), "episode")
	}
}

// inline puts the style sheet and the script into the page, and their hashes into its policy.
func (v *exportPage) inline() error {
	var style []byte
	for _, name := range []string{"style.css", "pages.css"} {
		sheet, err := files.ReadFile("assets/" + name)
		if err != nil {
			return fmt.Errorf("reading the style sheet: %w", err)
		}
		style = append(style, sheet...)
	}
	script, err := files.ReadFile("assets/app.js")
	if err != nil {
		return fmt.Errorf("reading the script: %w", err)
	}
	v.Style, v.Script = template.CSS(style), template.JS(script)
	v.Policy = fmt.Sprintf("default-src 'none'; style-src '%s'; script-src '%s'; base-uri 'none'; form-action 'none'", hashSource(style), hashSource(script))
	return nil
}

// hashSource returns the source expression of a Content-Security-Policy for a text.
func hashSource(text []byte) string {
	sum := sha256.Sum256(text)
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
