package selection

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
)

// FileSchema is the schema of selection files.
const FileSchema = "tracesmith.selection/1"

// Header is the first line of a selection file. The other lines are schemas.SelectionRow, in
// the order of the tables.
type Header struct {
	Schema         string   `json:"schema"`
	Dataset        string   `json:"dataset,omitempty"` // name of the dataset; "" if the selection was made for runs
	Version        string   `json:"version,omitempty"`
	Runs           []string `json:"runs,omitempty"` // IDs of the runs
	Episodes       int      `json:"episodes"`
	Kept           int      `json:"kept"`
	EpisodesSHA256 string   `json:"episodes_sha256"` // hash of the sorted pairs (episode_id, content_sha256); "" if the selection comes from a dataset
	Recipe         *Recipe  `json:"recipe"`

	schemas.SelectionInfo
}

// File is a saved selection. It can be applied only to the episodes for which it was made.
type File struct {
	Header Header
	Rows   []schemas.SelectionRow

	place string
	sha   string
}

// NewHeader returns the header for res, a result of r. The caller must set Dataset and
// Version, or Runs.
func NewHeader(r *Recipe, res Result) Header {
	return Header{
		Schema: FileSchema, Episodes: len(res.Rows), Kept: len(res.Kept), EpisodesSHA256: res.Episodes,
		Recipe: r, SelectionInfo: res.Info,
	}
}

// Info returns the entry for a manifest.
func (h Header) Info() schemas.SelectionInfo { return h.SelectionInfo }

// Write writes a selection file. Each line is canonical JSON.
func Write(w io.Writer, h Header, rows []schemas.SelectionRow) error {
	line := func(v any) error {
		raw, err := schemas.CanonicalJSON(v)
		if err != nil {
			return err
		}
		_, err = w.Write(append(raw, '\n'))
		return err
	}
	if err := line(h); err != nil {
		return fmt.Errorf("writing the selection: %w", err)
	}
	for _, row := range rows {
		if err := line(row); err != nil {
			return fmt.Errorf("writing the selection: %w", err)
		}
	}
	return nil
}

// maxLine is the maximum length of a line of a selection file, in bytes.
const maxLine = 4 << 20

// ParseFile reads a selection file. place is its name in error messages.
func ParseFile(place string, r io.Reader) (*File, error) {
	f := &File{place: place}
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 64<<10), maxLine)
	seen := map[string]bool{}
	kept := 0
	for n := 1; lines.Scan(); n++ {
		fail := func(err error) error {
			return fmt.Errorf("selection file %s, line %d: %w: write it again with tracesmith filter", place, n, err)
		}
		if n == 1 {
			if err := f.Header.parse(lines.Bytes()); err != nil {
				return nil, fail(err)
			}
			continue
		}
		row, err := parseRow(lines.Bytes())
		if err != nil {
			return nil, fail(err)
		}
		if seen[row.EpisodeID] {
			return nil, fail(fmt.Errorf("episode %s occurs twice", row.EpisodeID))
		}
		seen[row.EpisodeID] = true
		if row.Kept {
			kept++
		}
		f.Rows = append(f.Rows, row)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("selection file %s: %w", place, err)
	}
	if f.Header.Schema == "" {
		return nil, fmt.Errorf("selection file %s is empty: write it again with tracesmith filter", place)
	}
	if len(f.Rows) != f.Header.Episodes || kept != f.Header.Kept {
		return nil, fmt.Errorf("selection file %s decides about %d episodes and keeps %d, but its first line says %d and %d: it is truncated or was changed: write it again with tracesmith filter",
			place, len(f.Rows), kept, f.Header.Episodes, f.Header.Kept)
	}
	f.seal()
	return f, nil
}

// seal computes the hash of the selection.
func (f *File) seal() {
	var body bytes.Buffer
	for _, row := range f.Rows {
		fmt.Fprintln(&body, row.EpisodeID, row.Kept)
	}
	f.sha = schemas.Hash(map[string]any{"recipe": f.Header.SHA256, "episodes": f.Header.EpisodesSHA256, "rows": schemas.HashBytes(body.Bytes())})
}

func (h *Header) parse(line []byte) error {
	if err := json.Unmarshal(line, h); err != nil {
		return fmt.Errorf("not the header of a selection file (%w)", err)
	}
	if h.Schema != FileSchema {
		return fmt.Errorf("schema is %q, but this program reads %q", h.Schema, FileSchema)
	}
	if h.Name == "" || strings.ContainsAny(h.Name, "/\\ \x00") || strings.HasPrefix(h.Name, ".") {
		return fmt.Errorf("name is %q, which is not valid as a file name", h.Name)
	}
	return nil
}

func parseRow(line []byte) (schemas.SelectionRow, error) {
	var row schemas.SelectionRow
	if err := json.Unmarshal(line, &row); err != nil {
		return row, fmt.Errorf("not a decision about an episode (%w)", err)
	}
	if row.EpisodeID == "" {
		return row, errors.New("episode_id is missing")
	}
	if row.Kept == (len(row.Reasons) > 0) || row.Kept == (row.FirstReason != nil) {
		return row, fmt.Errorf("episode %s must be either kept or have reasons against it", row.EpisodeID)
	}
	if row.Reasons == nil {
		row.Reasons = []string{}
	}
	return row, nil
}

// About returns the description of the recipe, or its expression.
func (f *File) About() string {
	if f.Header.Recipe != nil && f.Header.Recipe.Description != "" {
		return f.Header.Recipe.Description
	}
	return f.Header.Expr
}

// SHA256 identifies the recipe, the episodes and the decisions.
func (f *File) SHA256() string { return f.sha }

// Apply repeats the decisions. It returns an Error unless src has exactly the episodes for
// which they were made.
func (f *File) Apply(ctx context.Context, src Source) (Result, error) {
	var all []*candidate
	present := map[string]bool{}
	for e, err := range src(ctx, false) {
		if err != nil {
			return Result{}, err
		}
		c := (&Recipe{Group: defaultGroup}).candidate(&e.Row)
		all = append(all, c)
		present[c.out.EpisodeID] = true
	}
	if err := f.checkEpisodes(all, present); err != nil {
		return Result{}, &Error{err}
	}
	decisions := map[string]schemas.SelectionRow{}
	for _, row := range f.Rows {
		decisions[row.EpisodeID] = row
	}
	slices.SortFunc(all, func(a, b *candidate) int { return slices.Compare(a.key[:], b.key[:]) })
	res := Result{Funnel: f.Header.Funnel, Info: f.Header.SelectionInfo, Episodes: episodesHash(all)}
	res.Info.KeptGold = 0 // computed again, because older files do not have it
	for _, c := range all {
		row := decisions[c.out.EpisodeID]
		res.Rows = append(res.Rows, row)
		if row.Kept {
			res.Kept = append(res.Kept, row.EpisodeID)
			if c.gold {
				res.Info.KeptGold++
			}
		}
	}
	return res, nil
}

// checkEpisodes returns an error if the episodes are not those for which the decisions were made.
func (f *File) checkEpisodes(all []*candidate, present map[string]bool) error {
	remedy := "make one for these episodes with tracesmith filter"
	var missing []string
	for _, row := range f.Rows {
		if !present[row.EpisodeID] {
			missing = append(missing, row.EpisodeID)
		}
	}
	switch {
	case len(missing) > 0 && len(missing) == len(f.Rows):
		return fmt.Errorf("selection file %s belongs to %s: none of its %d episodes are here: %s", f.place, f.origin(), len(f.Rows), remedy)
	case len(missing) > 0:
		return fmt.Errorf("selection file %s, made for %s, names %d episodes that are missing here, such as %s: %s", f.place, f.origin(), len(missing), missing[0], remedy)
	case len(all) > len(f.Rows):
		return fmt.Errorf("selection file %s, made for %s, says nothing about %d of the %d episodes here: %s", f.place, f.origin(), len(all)-len(f.Rows), len(all), remedy)
	case f.Header.EpisodesSHA256 != "" && episodesHash(all) != f.Header.EpisodesSHA256:
		return fmt.Errorf("selection file %s, made for %s, is for episodes with the same IDs but different content: %s", f.place, f.origin(), remedy)
	}
	return nil
}

// origin describes the dataset or the runs for which the decisions were made.
func (f *File) origin() string {
	switch h := f.Header; {
	case h.Dataset != "":
		return fmt.Sprintf("dataset %s, version %s", h.Dataset, h.Version)
	case len(h.Runs) == 1:
		return "run " + h.Runs[0]
	case len(h.Runs) > 1:
		return fmt.Sprintf("runs %s and %d more", h.Runs[0], len(h.Runs)-1)
	}
	return "an unnamed dataset"
}
