package choose

import (
	"fmt"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"github.com/tracesmith/tracesmith/agents/oracle/write"
)

// fix is what the gold patch changes.
type fix struct {
	lines     map[write.Place]bool   // the lines that it removes, or the neighbors of an insertion
	replaced  map[write.Place]string // by single lines
	exchanged map[write.Place]bool   // lines that change places with the next one
	files     map[string]bool
}

func readFix(patch string) (fix, error) {
	files, _, err := gitdiff.Parse(strings.NewReader(patch))
	if err != nil {
		return fix{}, fmt.Errorf("parsing the gold patch: %w", err)
	}
	f := fix{lines: map[write.Place]bool{}, replaced: map[write.Place]string{}, exchanged: map[write.Place]bool{}, files: map[string]bool{}}
	for _, file := range files {
		if side := file.OldName[:min(2, len(file.OldName))]; !strings.Contains(patch, "diff --git ") && (side == "a/" || side == "b/") {
			file.OldName = file.OldName[2:] // gitdiff removes the prefix only from git patches
		}
		f.files[file.OldName] = true
		for _, hunk := range file.TextFragments {
			f.add(file.OldName, hunk)
			f.addExchange(file.OldName, hunk)
		}
	}
	return f, nil
}

func (f *fix) add(file string, hunk *gitdiff.TextFragment) {
	line := int(hunk.OldPosition)
	var removed []int
	var added []string
	flush := func() {
		switch {
		case len(removed) == 1 && len(added) == 1:
			f.replaced[write.Place{File: file, Line: removed[0]}] = strings.TrimSpace(added[0])
		case len(removed) == 0 && len(added) > 0:
			f.lines[write.Place{File: file, Line: line - 1}] = true
			f.lines[write.Place{File: file, Line: line}] = true
		}
		for _, n := range removed {
			f.lines[write.Place{File: file, Line: n}] = true
		}
		removed, added = nil, nil
	}
	for _, l := range hunk.Lines {
		switch l.Op {
		case gitdiff.OpDelete:
			removed = append(removed, line)
			line++
		case gitdiff.OpAdd:
			added = append(added, l.Line)
		case gitdiff.OpContext:
			flush()
			line++
		}
	}
	flush()
}

// addExchange notes two lines that change places: one of them is removed on one side of the other and added on the other side.
func (f *fix) addExchange(file string, hunk *gitdiff.TextFragment) {
	line := int(hunk.OldPosition)
	for i, l := range hunk.Lines {
		if i+2 < len(hunk.Lines) {
			a, b, c := l, hunk.Lines[i+1], hunk.Lines[i+2]
			isMoved := a.Op != c.Op && a.Op != gitdiff.OpContext && c.Op != gitdiff.OpContext && b.Op == gitdiff.OpContext
			if isMoved && strings.TrimSpace(a.Line) == strings.TrimSpace(c.Line) {
				f.exchanged[write.Place{File: file, Line: line}] = true
			}
		}
		if l.Op != gitdiff.OpAdd {
			line++
		}
	}
}

// isReplacement reports whether the fix replaces a line by a statement, up to parentheses and spaces.
func (f *fix) isReplacement(p write.Place, statement string) bool {
	plain := strings.NewReplacer("(", "", ")", "", " ", "")
	text, ok := f.replaced[p]
	return ok && plain.Replace(text) == plain.Replace(statement)
}

// within reports whether the fix changes a statement that begins at a place and ends in a line.
func (f *fix) within(p write.Place, last int) bool {
	for line := p.Line; line <= max(last, p.Line); line++ {
		if f.lines[write.Place{File: p.File, Line: line}] {
			return true
		}
	}
	return false
}

// distance returns how many lines a place is above a line of the fix in its file, or a high number.
func (f *fix) distance(p write.Place) int {
	least := 1 << 20
	for q := range f.lines {
		if q.File == p.File && p.Line <= q.Line {
			least = min(least, q.Line-p.Line)
		}
	}
	return least
}

// reads reports whether the lines from a place to a last one contain a line of the fix.
func (f *fix) reads(p write.Place, last int) bool {
	for q := range f.lines {
		if q.File == p.File && p.Line <= q.Line && q.Line <= last {
			return true
		}
	}
	return false
}
