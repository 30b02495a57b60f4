package synth

import (
	"regexp"
	"strconv"
	"strings"
)

var hunkHeader = regexp.MustCompile(`^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@`)

// changedLines returns the lines that a unified diff changes, by file: before has line
// numbers of the old files, after those of the new files. For a pure insertion, before has
// the lines around it; for a pure removal, after has the lines around it.
func changedLines(patch string) (before, after map[string][]int) {
	before, after = map[string][]int{}, map[string][]int{}
	file := ""
	old, now := 0, 0
	var minus, plus []int
	flush := func() {
		if len(minus)+len(plus) == 0 {
			return
		}
		if len(minus) == 0 {
			minus = []int{max(old-1, 1), old}
		}
		if len(plus) == 0 {
			plus = []int{max(now-1, 1), now}
		}
		before[file], after[file] = append(before[file], minus...), append(after[file], plus...)
		minus, plus = nil, nil
	}
	for line := range strings.Lines(patch) {
		switch {
		case strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "diff "), strings.HasPrefix(line, "index "):
			flush()
			old, now = 0, 0
		case strings.HasPrefix(line, "+++ ") && old == 0:
			file = strings.TrimRight(strings.TrimPrefix(line[4:], "b/"), "\t\n")
		case strings.HasPrefix(line, "@@ "):
			flush()
			if m := hunkHeader.FindStringSubmatch(line); m != nil {
				old, _ = strconv.Atoi(m[1])
				now, _ = strconv.Atoi(m[2])
			}
		case strings.HasPrefix(line, "-"):
			minus = append(minus, old)
			old++
		case strings.HasPrefix(line, "+"):
			plus = append(plus, now)
			now++
		case strings.HasPrefix(line, " "), line == "\n":
			flush()
			old++
			now++
		}
	}
	flush()
	return before, after
}
