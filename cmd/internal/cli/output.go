package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"text/tabwriter"
)

// PrintJSON writes one indented JSON document.
func PrintJSON(s *State, v any) error {
	enc := json.NewEncoder(s.Stdout)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("writing output: %w", err)
	}
	return nil
}

// newTable returns a writer of a table with aligned columns. titles are separated by tabs and
// become the first line. The caller must call Flush.
func newTable(w io.Writer, titles string) *tabwriter.Writer {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, titles)
	return t
}

// count formats a number with its noun, such as "1 file", "2 files" or "2 repositories".
func count(n int, noun string) string {
	stem, isY := strings.CutSuffix(noun, "y")
	switch {
	case n == 1:
	case isY:
		noun = stem + "ies"
	default:
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// creating returns the error of a file or directory that cannot be created at path.
func creating(path string, err error) error {
	if dir := filepath.Dir(path); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("creating %s: there is no directory %s: make it, or choose another -o", path, dir)
	}
	return fmt.Errorf("creating %s: %w", path, err)
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// firstLine returns the first line of text that is not empty, without the # marks of a heading.
func firstLine(text string) string {
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.TrimSpace(strings.TrimLeft(line, "# ")); line != "" {
			return line
		}
	}
	return ""
}

// clip shortens text to at most n runes, the last of which is then an ellipsis.
func clip(text string, n int) string {
	r := []rune(text)
	if len(r) <= n {
		return text
	}
	return string(r[:n-1]) + "…"
}
