package nearest_test

import (
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/configs/nearest"
)

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"a", "", 1}, {"", "abc", 3}, {"kitten", "sitting", 3}, {"memry", "memory", 1}, {"ab", "ba", 2},
		{strings.Repeat("x", 256), "x", 255},
	} {
		if got := nearest.Distance(c.a, c.b); got != c.want {
			t.Errorf("%.9q to %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestName(t *testing.T) {
	names := []string{"memory", "disk", "cpus", "cpu"}
	for _, c := range []struct {
		wrong  string
		within int
		want   string
	}{
		{"memry", 2, "memory"}, {"memry", 0, ""}, {"cpu", 2, "cpu"}, {"cpuz", 2, "cpus"}, {"network", 2, ""}, {"", 2, ""},
	} {
		if got := nearest.Name(c.wrong, names, c.within); got != c.want {
			t.Errorf("%q within %d: %q, want %q", c.wrong, c.within, got, c.want)
		}
	}
}
