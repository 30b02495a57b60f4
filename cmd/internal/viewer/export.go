package viewer

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/DataDog/datadog-agent/pkg/template/html"

	"github.com/tracesmith/tracesmith/sinks"
)

// maxExport limits the text of an exported file, because browsers cannot open much larger ones.
const maxExport = 64 << 20

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

// Export writes one HTML file with the episodes that an expression keeps and that name stands for;
// "" means all. The file loads nothing: its policy permits only its own style sheet and script, by
// their hashes. Export returns the number of episodes.
func (s *Server) Export(ctx context.Context, w io.Writer, expr, name string) (int, error) {
	unlock, err := s.refresh(ctx)
	if err != nil {
		return 0, err
	}
	defer unlock()
	found, err := find(ctx, s.places, query{Expr: expr})
	if err != nil {
		return 0, err
	}
	v := &exportPage{page: s.page("Episodes", "export")}
	size := 0
	for _, e := range found {
		if e.row == nil || name != "" && !e.named(name) {
			continue
		}
		t, err := e.place.data.Trajectory(ctx, *e.row)
		if err != nil {
			return 0, err
		}
		if size += textBytes(t.Steps); size > maxExport {
			return 0, fmt.Errorf("the episodes have more than %s of text, which is too much for one file: choose some with -e or --episode", bytesText(maxExport))
		}
		v.add(s, e, t)
	}
	if len(v.Episodes) == 0 {
		return 0, errors.New("no episode matches: nothing to export")
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

// add adds an episode with its line in the list.
func (v *exportPage) add(s *Server, e *entry, t sinks.Trajectory) {
	anchor := fmt.Sprintf("e%d-", len(v.Episodes)+1)
	line := e.line()
	line.Link = "#" + anchor + "top"
	v.Lines = append(v.Lines, line)
	v.Episodes = append(v.Episodes, s.episode(e.place, t, anchor, ""))
	if len(v.Episodes) == 1 {
		v.Title = v.Episodes[0].Task
	} else {
		v.Title = plural(int64(len(v.Episodes)), "episode")
	}
}

// inline puts the style sheet and the script into the page, and their hashes into its policy.
func (v *exportPage) inline() error {
	style, err := files.ReadFile("assets/style.css")
	if err != nil {
		return fmt.Errorf("reading the style sheet: %w", err)
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
