package policies

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
)

// goldSpot lists the lines of one buggy file that the gold patch touches: the lines
// it removes, and the two lines around a pure insertion. The agent demonstrator uses it
// only to choose among the actions that earlier observations justify. Messages and
// calls must not reveal it.
type goldSpot struct {
	path  string
	lines []int
}

// goldSpots returns a goldSpot for each existing file with lines that the patch touches. It leaves
// out files that were empty, and those of which only the name or the mode changes.
func goldSpots(patch string) ([]goldSpot, error) {
	files, _, err := gitdiff.Parse(strings.NewReader(patch))
	if err != nil {
		return nil, fmt.Errorf("parsing the patch: %w", err)
	}
	var out []goldSpot
	for _, f := range files {
		spot := goldSpot{path: f.OldName}
		for _, frag := range f.TextFragments {
			line := int(frag.OldPosition)
			removed := 0 // lines since the last context line
			for _, l := range frag.Lines {
				switch l.Op {
				case gitdiff.OpDelete:
					spot.lines = append(spot.lines, line)
					removed++
					line++
				case gitdiff.OpContext:
					removed = 0
					line++
				case gitdiff.OpAdd:
					if removed > 0 {
						continue // a replacement
					}
					for _, n := range []int{line - 1, line} {
						if n > 0 && !slices.Contains(spot.lines, n) {
							spot.lines = append(spot.lines, n)
						}
					}
				}
			}
		}
		if f.OldName != "" && len(spot.lines) > 0 {
			out = append(out, spot)
		}
	}
	return out, nil
}
