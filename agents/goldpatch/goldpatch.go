// Package goldpatch expresses gold patches as calls of tools.
package goldpatch

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"github.com/tracesmith/tracesmith/env/shellwords"
	"github.com/tracesmith/tracesmith/schemas"
)

// Edits converts a unified diff to calls of the tools edit and bash. Run in order
// on the base tree, the calls produce the patched tree. They have GoldEdit set and no id.
// The edits of a file go from the bottom up, so that their line numbers are those of the
// base tree.
// Edits returns an error for an invalid patch, for binary files and symbolic links, and
// for an insertion without an adjacent context line.
func Edits(patch string) ([]schemas.ToolCall, error) {
	files, err := parsePatch(patch)
	if err != nil {
		return nil, err
	}
	var calls []schemas.ToolCall
	for _, f := range files {
		more, err := fileEdits(f)
		if err != nil {
			return nil, fmt.Errorf("expressing the gold patch of %s as edits: %w", f.name(), err)
		}
		calls = append(calls, more...)
	}
	return calls, nil
}

// Line returns a line in the base tree that a gold patch changes: the first line of
// code that the patch removes from a file, or else the first line of code in the context
// of its hunks. It prefers Python files that are not named like tests. ok is false if
// there is no such line or if the patch is invalid.
func Line(patch string) (file string, line int, ok bool) {
	files, err := parsePatch(patch)
	if err != nil {
		return "", 0, false
	}
	for _, wantSource := range []bool{true, false} {
		for _, f := range files {
			if f.IsNew || f.IsBinary || wantSource != isSource(f.OldName) {
				continue
			}
			if line, ok := firstCode(f, gitdiff.OpDelete); ok {
				return f.OldName, line, true
			}
			if line, ok := firstCode(f, gitdiff.OpContext); ok {
				return f.OldName, line, true
			}
		}
	}
	return "", 0, false
}

// isSource reports whether a file is a Python file that is not named like a test.
func isSource(name string) bool {
	base := path.Base(name)
	return strings.HasSuffix(base, ".py") && !strings.HasPrefix(base, "test_") && !strings.HasSuffix(base, "_test.py") && base != "conftest.py"
}

// firstCode returns the number of the first line of code that has the given operation in the diff.
func firstCode(f goldFile, op gitdiff.LineOp) (int, bool) {
	for _, h := range f.TextFragments {
		n := int(h.OldPosition)
		for _, l := range h.Lines {
			text := strings.TrimSpace(l.Line)
			if l.Op == op && text != "" && !strings.HasPrefix(text, "#") && !strings.HasPrefix(text, `"""`) {
				return n, true
			}
			if l.Old() {
				n++
			}
		}
	}
	return 0, false
}

type goldFile struct{ *gitdiff.File }

func (f goldFile) name() string {
	return cmp.Or(f.NewName, f.OldName)
}

func parsePatch(patch string) ([]goldFile, error) {
	parsed, _, err := gitdiff.Parse(strings.NewReader(patch))
	if err != nil {
		return nil, fmt.Errorf("reading the gold patch: %w", err)
	}
	if len(parsed) == 0 {
		return nil, errors.New("reading the gold patch: it changes no file")
	}
	// The parser removes a/ and b/ only after a "diff --git" line.
	hasHeader := strings.Contains("\n"+patch, "\ndiff --git ")
	var out []goldFile
	for _, f := range parsed {
		if !hasHeader {
			f.OldName, f.NewName = trimSide(f.OldName), trimSide(f.NewName)
		}
		for _, name := range []string{f.OldName, f.NewName} {
			if path.IsAbs(name) || name == ".." || strings.HasPrefix(path.Clean(name), "../") {
				return nil, fmt.Errorf("reading the gold patch: %q lies outside the repository", name)
			}
		}
		out = append(out, goldFile{f})
	}
	return out, nil
}

// trimSide removes the prefix a/ or b/ from a file name in a diff.
func trimSide(name string) string {
	if strings.HasPrefix(name, "a/") || strings.HasPrefix(name, "b/") {
		return name[2:]
	}
	return name
}

// fileEdits returns the calls for one file: bash calls that delete, move or copy it or create it empty,
// then edit calls for its text, then bash calls for its final newline and its mode.
func fileEdits(f goldFile) ([]schemas.ToolCall, error) {
	if f.IsBinary || f.NewMode&fs.ModeSymlink != 0 {
		return nil, errors.New("binary files and links cannot be edited as text")
	}
	var calls []schemas.ToolCall
	switch {
	case f.IsDelete:
		return []schemas.ToolCall{shell("rm -- " + shellwords.Quote(f.OldName))}, nil
	case f.IsRename, f.IsCopy:
		verb := "mv -- "
		if f.IsCopy {
			verb = "cp -p -- "
		}
		calls = append(calls, shell("mkdir -p -- "+shellwords.Quote(path.Dir(f.NewName))+" && "+verb+shellwords.Quote(f.OldName)+" "+shellwords.Quote(f.NewName)))
	}
	if f.IsNew && len(f.TextFragments) == 0 {
		calls = append(calls, shell("mkdir -p -- "+shellwords.Quote(path.Dir(f.NewName))+" && : > "+shellwords.Quote(f.NewName)))
	}
	for i := len(f.TextFragments) - 1; i >= 0; i-- {
		more, err := hunkEdits(f, f.TextFragments[i])
		if err != nil {
			return nil, err
		}
		calls = append(calls, more...)
	}
	calls = append(calls, finalNewline(f)...)
	if m := f.NewMode; m != 0 && m.Perm() != f.OldMode.Perm() && (f.OldMode != 0 || m.Perm()&0o111 != 0) {
		calls = append(calls, shell(fmt.Sprintf("chmod %03o -- %s", m.Perm(), shellwords.Quote(f.NewName))))
	}
	return calls, nil
}

// emptyBlob is git's abbreviated hash of an empty file.
const emptyBlob = "e69de29"

// change is a run of adjacent removed and added lines in a hunk.
type change struct {
	first, removed int    // first line in the base, 1-based, and number of removed lines
	old            string // the removed lines
	added          []string
	before, after  *string // the adjacent context lines; nil if the hunk has none
}

// hunkEdits returns the edits of one hunk, from the bottom up.
func hunkEdits(f goldFile, h *gitdiff.TextFragment) ([]schemas.ToolCall, error) {
	if f.IsNew || h.OldLines == 0 && strings.HasPrefix(f.OldOIDPrefix, emptyBlob) {
		var text strings.Builder
		for _, l := range h.Lines {
			text.WriteString(l.Line)
		}
		return []schemas.ToolCall{edit(f.NewName, 0, 0, text.String())}, nil
	}
	changes := splitHunk(h)
	var calls []schemas.ToolCall
	for i := len(changes) - 1; i >= 0; i-- {
		c := changes[i]
		text := strings.Join(c.added, "")
		switch {
		case c.removed > 0 && strings.TrimSuffix(c.old, "\n") == strings.TrimSuffix(text, "\n"):
			// Only the newline at the end of the file differs: finalNewline changes it.
		case c.removed > 0:
			calls = append(calls, edit(f.NewName, c.first, c.first+c.removed-1, text))
		case c.before != nil:
			calls = append(calls, edit(f.NewName, c.first-1, c.first-1, *c.before+text))
		case c.after != nil:
			calls = append(calls, edit(f.NewName, c.first, c.first, text+*c.after))
		default:
			return nil, fmt.Errorf("the insertion at line %d has no context line: give a patch with context", c.first)
		}
	}
	return calls, nil
}

// finalNewline returns the call that adds or removes the newline at the end of a file.
// The edit tool cannot do this: it keeps the end of a file as it is.
func finalNewline(f goldFile) []schemas.ToolCall {
	if f.IsNew || len(f.TextFragments) == 0 {
		return nil
	}
	var oldLast, newLast *gitdiff.Line // the last lines before and after the change
	lines := f.TextFragments[len(f.TextFragments)-1].Lines
	for i, l := range lines {
		if l.Old() {
			oldLast = &lines[i]
		}
		if l.New() {
			newLast = &lines[i]
		}
	}
	switch {
	case oldLast == nil || newLast == nil || oldLast.NoEOL() == newLast.NoEOL():
		return nil
	case oldLast.NoEOL():
		return []schemas.ToolCall{shell(`printf '\n' >> ` + shellwords.Quote(f.NewName))}
	}
	return []schemas.ToolCall{shell("truncate -s -1 -- " + shellwords.Quote(f.NewName))}
}

func splitHunk(h *gitdiff.TextFragment) []change {
	var out []change
	n, open := int(h.OldPosition), false
	var before *string
	for _, l := range h.Lines {
		if l.Op == gitdiff.OpContext {
			if open {
				out[len(out)-1].after = &l.Line
			}
			before, open = &l.Line, false
			n++
			continue
		}
		if !open {
			out, open = append(out, change{first: n, before: before}), true
		}
		c := &out[len(out)-1]
		if l.Op == gitdiff.OpDelete {
			c.removed++
			c.old += l.Line
			n++
		} else {
			c.added = append(c.added, l.Line)
		}
	}
	return out
}

// edit returns a call that replaces lines start to end, or the whole file if start is 0.
func edit(file string, start, end int, text string) schemas.ToolCall {
	args := map[string]any{"path": file, "new_code": text}
	if start > 0 {
		args["start"], args["end"] = start, end
	}
	return goldCall("edit", args)
}

func shell(command string) schemas.ToolCall {
	return goldCall("bash", map[string]any{"command": command})
}

func goldCall(tool string, args map[string]any) schemas.ToolCall {
	c := schemas.NewToolCall(tool, args)
	c.GoldEdit = true
	return c
}
