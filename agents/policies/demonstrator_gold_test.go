package policies

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestGoldSpots(t *testing.T) {
	const head = "--- a/x.py\n+++ b/x.py\n"
	for name, c := range map[string]struct {
		patch string
		want  []int
	}{
		"replacement":                  {head + "@@ -1,3 +1,4 @@\n a\n-b\n+B\n+B\n c\n", []int{2}},
		"insertion":                    {head + "@@ -1,2 +1,3 @@\n a\n+b\n c\n", []int{1, 2}},
		"insertion before line 1":      {head + "@@ -1,1 +1,2 @@\n+a\n b\n", []int{1}},
		"insertion after a removal":    {head + "@@ -1,3 +1,3 @@\n-a\n b\n+B\n c\n", []int{1, 2, 3}},
		"insertion into an empty file": {"diff --git a/x.py b/x.py\n" + head + "@@ -0,0 +1 @@\n+a\n", nil},
	} {
		spots, err := goldSpots(c.patch)
		var got []int
		for _, s := range spots {
			got = append(got, s.lines...)
		}
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
}
