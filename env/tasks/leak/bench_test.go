package leak

import (
	"fmt"
	"strings"
	"testing"
)

// large is shelf with additional files of the given size in bytes.
func large(files, size int) repo {
	out := repo{}
	for name, text := range shelf {
		out[name] = text
	}
	for i := range files {
		var b strings.Builder
		for k := 0; b.Len() < size; k++ {
			fmt.Fprintf(&b, "def action_%d_%d(first, second=%d):\n    \"\"\"Adds to the value.\"\"\"\n    if first.value > second:  # a comment\n        return [\"text\", first.value + %d]\n    return first.step(second, name=\"n%d\")\n\n\n", i, k, k, i, k%7)
		}
		out[fmt.Sprintf("shelf/part%d/module_%d.py", i%20, i)] = b.String()
	}
	return out
}

func BenchmarkSearch(b *testing.B) {
	base := large(200, 10_000)
	b.SetBytes(200 * 10_000)
	for b.Loop() {
		search(b, base, fixedStore)
	}
}
