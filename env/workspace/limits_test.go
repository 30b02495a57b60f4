package workspace

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/env"
)

// The limits apply to all entries together. The test sets the counters as if most of a workspace had been read, because
// reading a workspace of that size takes many seconds.
func TestImportRefusesTooMuchInAll(t *testing.T) {
	for _, c := range []struct {
		entries int
		total   int64
		want    string // "" = accepted
	}{
		{MaxEntries - 2, MaxTreeBytes - 4, ""},
		{0, MaxTreeBytes - 3, fmt.Sprintf("more than %d bytes", MaxTreeBytes)},
		{MaxEntries - 1, 0, fmt.Sprintf("more than %d entries", MaxEntries)},
	} {
		i := newImporter(open(t), func(string) bool { return false })
		i.entries, i.total = c.entries, c.total
		_, err := i.read(t.Context(), bytes.NewReader(files{"a": {text: "ab"}, "b": {text: "cd"}}.tar(t)))
		switch {
		case c.want == "" && err == nil:
		case c.want == "" || !errors.Is(err, env.ErrRefused) || !strings.Contains(err.Error(), c.want):
			t.Errorf("after %d entries of %d bytes: %v, want %q", c.entries, c.total, err, c.want)
		}
	}
}
