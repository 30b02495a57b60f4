package leak

import (
	"path"
	"strings"
)

// Change is a file that the fix changes. A side is nil if the file is not there.
type Change struct {
	Path        string
	Base, Fixed *string
}

func isPython(name string) bool {
	switch path.Ext(name) {
	case ".py", ".pyi", ".pyx", ".pyw":
		return true
	}
	return false
}

// around is how many lines beside a change are compared with it.
const around = 60

// changedRegion returns the offsets of the changed lines of a fixed file and of some lines around.
func changedRegion(c Change, around int) (from, to int) {
	if c.Base == nil {
		return 0, len(*c.Fixed)
	}
	first, last := changedLines(*c.Fixed, *c.Base)
	line := 1
	to = len(*c.Fixed)
	for i, b := range []byte(*c.Fixed) {
		if b != '\n' {
			continue
		}
		if line++; line == first-around {
			from = i + 1
		}
		if line == last+around+1 {
			return from, i + 1
		}
	}
	return from, to
}

// changedLines returns the first and the last line of base that differ from fixed.
func changedLines(base, fixed string) (from, to int) {
	a, b := strings.Split(base, "\n"), strings.Split(fixed, "\n")
	for from < min(len(a), len(b)) && a[from] == b[from] {
		from++
	}
	end := 0
	for end < min(len(a), len(b))-from && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	return from + 1, max(from+1, len(a)-end)
}
