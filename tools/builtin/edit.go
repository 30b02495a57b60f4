package builtin

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/tools"
)

type editArgs struct {
	Path        string  `json:"path" jsonschema:"File to edit or create: a path relative to the workspace, or an absolute path inside it."`
	NewCode     *string `json:"new_code,omitempty" jsonschema:"The new text, with its indentation and without line numbers. Omit it to delete the selected lines or text."`
	Start       *int    `json:"start,omitempty" jsonschema:"First line to replace, counted from 1. To append to the file, give its number of lines plus one."`
	End         *int    `json:"end,omitempty" jsonschema:"Last line to replace, inclusive. Default: start, to replace only that line."`
	InsertAfter *int    `json:"insert_after,omitempty" jsonschema:"Instead of start and end: insert new_code after this line. 0 inserts it before the first line."`
	OldCode     *string `json:"old_code,omitempty" jsonschema:"Instead of start and end: the exact text to replace. It must occur exactly once in the file unless replace_all is true."`
	ReplaceAll  *bool   `json:"replace_all,omitempty" jsonschema:"With old_code: replace every occurrence. Default: false."`
}

type editSettings struct{ tools.Settings }

func init() {
	start, end := 12, 13
	code := "    total = 0\n    for item in items:"
	register("change or create a file", func(editSettings) (tools.Def[editArgs], error) {
		return tools.Def[editArgs]{
			Name: "edit", Category: "edit",
			Description: "Edit a text file in the workspace, or create one. Select what to change in one of four ways: " +
				"start and end replace a range of lines; insert_after inserts after a line; old_code replaces text that " +
				"occurs exactly once; with none of these, you replace the whole file or create it. An empty new_code " +
				"deletes the lines or the text. Line endings, a final newline and the file mode are preserved. You get a " +
				"unified diff; after the edit, the numbers of the lines below it have changed.",
			Example:        editArgs{Path: "src/main.py", NewCode: &code, Start: &start, End: &end},
			TruncationHint: "view the file to see the result",
			Call:           edit,
		}, nil
	})
}

// editMaxFile limits a file before and after the edit, in bytes.
const editMaxFile = 4 << 20

func edit(ctx context.Context, s *env.Session, a editArgs) (schemas.Observation, error) {
	p, err := locate(ctx, s, a.Path)
	switch {
	case err != nil:
		return schemas.Observation{}, err
	case p.IsDir:
		return schemas.Observation{}, tools.NewUserError("%s is a directory. Give the path of a file.", p)
	case strings.HasSuffix(a.Path, "/"):
		return schemas.Observation{}, tools.NewUserError("%s ends with a slash, so it names a directory. Give the path of a file.", a.Path)
	case p.Rel == ".git" || strings.HasPrefix(p.Rel, ".git/"):
		return schemas.Observation{}, tools.NewUserError("%s belongs to Git. Edit the project's own files instead.", p)
	}
	old := ""
	if p.Exists {
		data, total, err := s.Sandbox.ReadFile(ctx, p.Abs, editMaxFile)
		switch {
		case err != nil:
			return schemas.Observation{}, err
		case total > editMaxFile:
			return schemas.Observation{}, tools.NewUserError("%s is too large for edit (%d bytes). Use bash, for example sed -i.", p, total)
		case isBinary(data):
			return schemas.Observation{}, tools.NewUserError("%s is a binary file, and edit changes only text files. Use bash to change it.", p)
		}
		old = string(data)
	}
	splices, summary, err := planEdit(p, old, a)
	if err != nil {
		return schemas.Observation{}, err
	}
	text := applySplices(old, splices)
	switch {
	case p.Exists && text == old:
		return schemas.Observation{}, tools.NewUserError("Nothing changed: %s already contains exactly this text. View the file before you edit it again.", p)
	case len(text) > editMaxFile:
		return schemas.Observation{}, tools.NewUserError("%s would have %d bytes, which is too large for edit. Use bash to create large files.", p, len(text))
	}
	if err := s.Sandbox.WriteFile(ctx, p.Abs, []byte(text), 0); err != nil {
		return schemas.Observation{}, err
	}
	changes := editEvents(p.Rel, old, splices)
	for _, c := range changes {
		s.FileChanged(ctx, c)
	}
	return schemas.Observation{Text: summary + "\n" + editDiff(p, old, text), Targets: editTargets(p, changes)}, nil
}

// editTargets returns the ranges of new lines in ascending order.
func editTargets(p place, changes []env.Edit) []string {
	const most = 20
	var out []string
	offset := 0
	for i := len(changes) - 1; i >= 0 && len(out) < most; i-- {
		c := changes[i]
		if p.Exists && c.Added > 0 {
			out = append(out, lineRange(p.Rel, c.First+offset, c.First+offset+c.Added-1))
		}
		offset += c.Added - c.Removed
	}
	if len(out) == 0 {
		out = []string{p.Rel}
	}
	return out
}

// editDiff returns the unified diff of an edit. It escapes and shortens lines as view does.
func editDiff(p place, old, text string) string {
	from := quoteName("a/" + p.Rel)
	if !p.Exists {
		from = "/dev/null"
	}
	var b strings.Builder
	for line := range strings.Lines(udiff.Unified(from, quoteName("b/"+p.Rel), old, text)) {
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		b.WriteString(shorten(escapeControls(line), viewMaxLineBytes) + "\n")
	}
	return b.String()
}

// isBinary reports whether the first 8 KiB contain a NUL, which is also how grep and Git
// decide.
func isBinary(data []byte) bool { return bytes.IndexByte(data[:min(len(data), 8<<10)], 0) >= 0 }

// lineCount returns the number of lines, including a last line without a newline.
func lineCount(s string) int {
	n := strings.Count(s, "\n")
	if s != "" && !strings.HasSuffix(s, "\n") {
		n++
	}
	return n
}

// describeLines returns a range of lines in words, such as "lines 3-5".
func describeLines(start, end int) string {
	if start == end {
		return fmt.Sprintf("line %d", start)
	}
	return fmt.Sprintf("lines %d-%d", start, end)
}
