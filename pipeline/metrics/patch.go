package metrics

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"github.com/tracesmith/tracesmith/schemas"
)

// Patch describes the changes of a git patch.
type Patch struct {
	Files    []string          // changed files, sorted and unique; both names of a renamed file
	Existing []string          // the files that existed before
	Removed  []string          // the existing files that the patch deletes, or tests that it renames to non-tests
	Added    int               // number of text lines
	Deleted  int               // number of text lines
	lines    map[string]int    // counts of changed lines, by "file\x00+text" or "file\x00-text"
	ranges   map[string][]span // line ranges of the hunks before the change, by file
	removed  [][]string        // deleted lines of each hunk, trimmed
	added    map[string]string // added lines by file
	deleted  map[string]string // deleted lines by file
	changes  map[string][]change
	created  map[string]bool // new files
}

// change replaces lines of a file: removed lines from first on, by added lines. Without removed
// lines, it inserts before first.
type change struct {
	first, removed, added int
	indent                int  // of the first line that is added and not blank, or -1
	isLast                bool // nothing follows in the file, as far as the patch shows
}

// lines returns the lines before the change that it concerns: the removed lines, or the two
// neighbors of an insertion.
func (c change) lines() []int {
	var out []int
	for n := c.first; n < c.first+c.removed; n++ {
		out = append(out, n)
	}
	if c.removed > 0 {
		return out
	}
	if c.first > 1 {
		out = append(out, c.first-1)
	}
	if !c.isLast {
		out = append(out, c.first)
	}
	return out
}

// changesOf returns the changes of a hunk. first is the number of its first line before the change.
// Each line begins with a space, "-" or "+".
func changesOf(first int, lines []string) []change {
	var out []change
	current := change{indent: -1}
	flush := func(isLast bool) {
		if current.removed+current.added > 0 {
			current.isLast = isLast
			out = append(out, current)
		}
		current = change{indent: -1}
	}
	old := first
	context := false // the hunk has context, so it shows whether a line follows
	for _, l := range lines {
		switch l[0] {
		case ' ':
			flush(false)
			context = true
			old++
			continue
		case '-':
			if current.removed+current.added == 0 {
				current.first = old
			}
			current.removed++
			old++
		case '+':
			if current.removed+current.added == 0 {
				current.first = old
			}
			current.added++
			if current.indent < 0 && strings.TrimSpace(l[1:]) != "" {
				current.indent = indentation(l[1:])
			}
		}
	}
	flush(context)
	return out
}

type span struct{ first, last int64 }

// ParsePatch parses a Git patch, which may be empty or contain binary files.
func ParsePatch(patch []byte) (Patch, error) {
	p := Patch{Files: []string{}, lines: map[string]int{}, ranges: map[string][]span{}, added: map[string]string{}, deleted: map[string]string{},
		changes: map[string][]change{}, created: map[string]bool{}}
	if len(bytes.TrimSpace(patch)) == 0 {
		return p, nil
	}
	files, _, err := gitdiff.Parse(bytes.NewReader(patch))
	if err != nil {
		return p, fmt.Errorf("reading patch: %w", err)
	}
	for _, f := range files {
		if !f.IsNew && f.OldName != "" {
			p.Existing = append(p.Existing, f.OldName)
			if f.IsDelete || f.IsRename && schemas.IsTestModule(f.OldName) && !schemas.IsTestModule(f.NewName) {
				p.Removed = append(p.Removed, f.OldName)
			}
		}
		for _, name := range []string{f.OldName, f.NewName} {
			if name != "" {
				p.Files = append(p.Files, name)
			}
		}
		if f.IsNew {
			p.created[f.NewName] = true
		}
		for _, t := range f.TextFragments {
			if !f.IsNew {
				p.changes[f.OldName] = append(p.changes[f.OldName], fragmentChanges(t)...)
			}
			p.Added += int(t.LinesAdded)
			p.Deleted += int(t.LinesDeleted)
			p.ranges[f.OldName] = append(p.ranges[f.OldName], span{t.OldPosition, t.OldPosition + max(0, t.OldLines-1)})
			p.removed = append(p.removed, deletedLines(t))
			for _, l := range t.Lines {
				if l.Op == gitdiff.OpAdd {
					p.added[f.NewName] += l.Line
				}
				if l.Op == gitdiff.OpDelete {
					p.deleted[f.OldName] += l.Line
				}
				if text := strings.TrimSpace(l.Line); l.Op != gitdiff.OpContext && text != "" {
					p.lines[max(f.NewName, f.OldName)+"\x00"+l.Op.String()+text]++
				}
			}
		}
	}
	slices.Sort(p.Files)
	slices.Sort(p.Existing)
	p.Files, p.Existing = slices.Compact(p.Files), slices.Compact(p.Existing)
	return p, nil
}

func fragmentChanges(t *gitdiff.TextFragment) []change {
	lines := make([]string, len(t.Lines))
	for i, l := range t.Lines {
		lines[i] = l.Op.String() + l.Line
	}
	first := int(t.OldPosition)
	if t.OldLines == 0 {
		first++ // the hunk names the line before the insertion
	}
	return changesOf(first, lines)
}

// Changed returns the numbers of the lines of a file, before the patch, that it concerns: the removed
// lines, and the two neighbors of lines that it inserts.
func (p Patch) Changed(file string) (lines []int) {
	for _, c := range p.changes[file] {
		lines = append(lines, c.lines()...)
	}
	return lines
}

// Tests returns the changed files that are tests or their configuration.
func (p Patch) Tests() []string {
	return slices.DeleteFunc(slices.Clone(p.Files), func(f string) bool { return !schemas.IsTest(f) })
}

// EditsTests reports whether the patch changes existing tests or any test
// configuration. New tests do not count.
func (p Patch) EditsTests() bool {
	return slices.ContainsFunc(p.Existing, schemas.IsTest) || slices.ContainsFunc(p.Files, schemas.IsTestConfig)
}

// Similarity returns the Dice coefficient of the changed lines of two patches, 0 to 1,
// ignoring white space at line ends.
func (p Patch) Similarity(q Patch) float64 {
	var common, total int
	for l, n := range p.lines {
		common += min(n, q.lines[l])
		total += n
	}
	for _, n := range q.lines {
		total += n
	}
	if total == 0 {
		return 0
	}
	return 2 * float64(common) / float64(total)
}

// deletedLines returns the lines that a hunk deletes, trimmed and without blank lines.
func deletedLines(t *gitdiff.TextFragment) []string {
	var out []string
	for _, l := range t.Lines {
		if text := strings.TrimSpace(l.Line); l.Op == gitdiff.OpDelete && text != "" {
			out = append(out, text)
		}
	}
	return out
}

// minShownBytes is the minimum total length of the lines of a hunk. Shorter lines may occur in a
// text by chance.
const minShownBytes = 12

// shownIn reports whether a text, or the command that printed it, mentions one of the files, and
// whether the text also shows all lines that a hunk of the patch deletes. The lines may have any
// prefix, such as line numbers.
func (p Patch) shownIn(files []string, command, text string) (file, hunk bool) {
	file = slices.ContainsFunc(files, func(f string) bool { return mentions(text, f) || mentions(command, f) })
	hunk = file && slices.ContainsFunc(p.removed, func(lines []string) bool {
		return len(strings.Join(lines, "")) >= minShownBytes && !slices.ContainsFunc(lines, func(l string) bool { return !showsLine(text, l) })
	})
	return file, hunk
}

// showsLine reports whether a line of text ends with the given line.
func showsLine(text, line string) bool {
	for l := range strings.Lines(text) {
		l = strings.TrimRight(l, " \t\r\n")
		if rest, ok := strings.CutSuffix(l, line); ok && (rest == "" || !isNameByte(rest[len(rest)-1])) {
			return true
		}
	}
	return false
}

// isNameByte reports whether c can be part of an identifier or a file name.
func isNameByte(c byte) bool {
	return c == '_' || c == '-' || c == '.' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

// mentions reports whether a text contains a path, by itself or at the end of a longer
// path.
func mentions(text, file string) bool {
	for at := 0; ; {
		i := strings.Index(text[at:], file)
		if i < 0 {
			return false
		}
		from, to := at+i, at+i+len(file)
		isWholeName := to == len(text) || !isNameByte(text[to]) || text[to] == '.' && (to+1 == len(text) || !isNameByte(text[to+1]))
		if (from == 0 || !isNameByte(text[from-1])) && isWholeName {
			return true
		}
		at = from + 1
	}
}

// hits reports whether lines first to last of a file, before the change, overlap a hunk.
func (p Patch) hits(file string, first, last int64) bool {
	return slices.ContainsFunc(p.ranges[file], func(s span) bool { return first <= s.last && s.first <= last })
}
