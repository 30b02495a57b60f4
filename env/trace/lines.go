package trace

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
)

// lineMap maps the lines of one file after a patch to its lines before the patch. A replaced line maps
// to the line that it replaces, and an inserted line to 0.
type lineMap struct {
	hunkLines map[int]int // lines in the hunks of the patch
	shifts    []shift     // for the other lines, in ascending order
}

// shift says that a patch moved the lines at and after from down by offset lines.
type shift struct{ from, offset int }

// parseLineMaps returns the line maps of a patch by file.
func parseLineMaps(patch []byte) (map[string]lineMap, error) {
	files, _, err := gitdiff.Parse(bytes.NewReader(patch))
	if err != nil {
		return nil, fmt.Errorf("reading a patch: %w", err)
	}
	out := map[string]lineMap{}
	for _, f := range files {
		m := lineMap{hunkLines: map[int]int{}}
		for _, part := range f.TextFragments {
			before, after := int(part.OldPosition), int(part.NewPosition)
			var deleted []int // deleted lines that no added line replaces so far
			for _, l := range part.Lines {
				switch l.Op {
				case gitdiff.OpDelete:
					deleted = append(deleted, before)
					before++
				case gitdiff.OpAdd:
					m.hunkLines[after] = 0
					if len(deleted) > 0 {
						m.hunkLines[after], deleted = deleted[0], deleted[1:]
					}
					after++
				default:
					m.hunkLines[after], deleted = before, nil
					before, after = before+1, after+1
				}
			}
			m.shifts = append(m.shifts, shift{after, after - before})
		}
		if !bytes.Contains(patch, []byte("diff --git ")) { // gitdiff removes the prefix only from git patches
			f.NewName = strings.TrimPrefix(f.NewName, "b/")
		}
		out[f.NewName] = m
	}
	return out, nil
}

// OldLines parses a patch. It returns a function that maps a line of a file after the patch to the line
// before the patch, or to 0 if the patch inserted the line.
func OldLines(patch []byte) (func(file string, line int) int, error) {
	maps, err := parseLineMaps(patch)
	if err != nil {
		return nil, err
	}
	return func(file string, line int) int { return maps[file].oldLine(line) }, nil
}

// oldLine returns the line before the patch, or 0 if the patch inserted it.
func (m lineMap) oldLine(line int) int {
	if before, ok := m.hunkLines[line]; ok {
		return before
	}
	offset := 0
	for _, s := range m.shifts {
		if s.from <= line {
			offset = s.offset
		}
	}
	return line - offset
}
