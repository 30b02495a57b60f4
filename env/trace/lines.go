package trace

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
)

// lineMap maps a line after a patch to the line of the tree before it. A replaced line maps to the old
// one, an inserted line to none.
type lineMap struct {
	exact  map[int]int
	shifts []shift // by their first line
}

// shift is by how much the patch moves the lines from one on.
type shift struct{ from, by int }

// lineMaps reads the line maps of a patch, by file.
func lineMaps(patch []byte) (map[string]lineMap, error) {
	files, _, err := gitdiff.Parse(bytes.NewReader(patch))
	if err != nil {
		return nil, fmt.Errorf("reading a patch: %w", err)
	}
	out := map[string]lineMap{}
	for _, f := range files {
		m := lineMap{exact: map[int]int{}}
		for _, part := range f.TextFragments {
			before, after := int(part.OldPosition), int(part.NewPosition)
			var gone []int // lines whose places are free
			for _, l := range part.Lines {
				switch l.Op {
				case gitdiff.OpDelete:
					gone = append(gone, before)
					before++
				case gitdiff.OpAdd:
					m.exact[after] = 0
					if len(gone) > 0 {
						m.exact[after], gone = gone[0], gone[1:]
					}
					after++
				default:
					m.exact[after], gone = before, nil
					before, after = before+1, after+1
				}
			}
			m.shifts = append(m.shifts, shift{after, after - before})
		}
		if !bytes.Contains(patch, []byte("diff --git ")) { // then the prefixes are left
			f.NewName = strings.TrimPrefix(f.NewName, "b/")
		}
		out[f.NewName] = m
	}
	return out, nil
}

// OldLines reads a patch and returns a function that maps a line of a patched file to the line of the
// tree, 0 if there is none.
func OldLines(patch []byte) (func(file string, line int) int, error) {
	maps, err := lineMaps(patch)
	if err != nil {
		return nil, err
	}
	return func(file string, line int) int { return maps[file].old(line) }, nil
}

// old is the line before the patch, 0 if there was none.
func (m lineMap) old(line int) int {
	if before, near := m.exact[line]; near {
		return before
	}
	by := 0
	for _, s := range m.shifts {
		if s.from <= line {
			by = s.by
		}
	}
	return line - by
}
