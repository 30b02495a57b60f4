package leak

import (
	"path"
	"strings"
)

// Change is a file that the fix changes. Base is nil if the fix adds the file, and Fixed is nil if it deletes the file.
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

// contextLines is the number of lines before and after a change that may also provide needles.
const contextLines = 60

// changedRegion returns the byte offsets in the fixed file of its changed lines, with the given number of lines before
// and after them.
func changedRegion(c Change, context int) (from, to int) {
	if c.Base == nil {
		return 0, len(*c.Fixed)
	}
	first, last := changedRange(*c.Fixed, *c.Base)
	line := 1
	to = len(*c.Fixed)
	for i, b := range []byte(*c.Fixed) {
		if b != '\n' {
			continue
		}
		if line++; line == first-context {
			from = i + 1
		}
		if line == last+context+1 {
			return from, i + 1
		}
	}
	return from, to
}

// changedRange returns the numbers of the first and the last line of base that differ from fixed.
func changedRange(base, fixed string) (from, to int) {
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
