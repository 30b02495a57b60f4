package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
)

// Special values of --split.
const (
	trainSplit = "train" // the default
	allSplits  = "all"
)

// checkSplits returns an error if --split names an unknown split, or none.
func (f *exportFlags) checkSplits() error {
	for _, split := range f.splits {
		if split != allSplits && !slices.Contains(schemas.Splits, split) {
			return fmt.Errorf("--split %q: choose from %s, or %s", split, strings.Join(schemas.Splits, ", "), allSplits)
		}
	}
	if len(f.splits) == 0 {
		return fmt.Errorf("--split names no split: choose from %s, or %s", strings.Join(schemas.Splits, ", "), allSplits)
	}
	return nil
}

func (f *exportFlags) inSplit(split string) bool {
	return slices.Contains(f.splits, split) || slices.Contains(f.splits, allSplits)
}

// splitsText names the splits in messages.
func (f *exportFlags) splitsText() string {
	switch {
	case slices.Contains(f.splits, allSplits):
		return "all splits"
	case len(f.splits) == 1:
		return "split " + f.splits[0]
	}
	return "splits " + strings.Join(f.splits, ", ")
}

// outside counts the selected episodes in splits that --split does not name.
func (r *lint) outside() int {
	n := 0
	for _, episodes := range r.OtherSplits {
		n += episodes
	}
	return n
}

// otherSplits describes the episodes that outside counts; "" if there are none.
func (r *lint) otherSplits() string {
	if r.outside() == 0 {
		return ""
	}
	var parts []string
	for _, split := range schemas.Splits {
		if n := r.OtherSplits[split]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", split, n))
		}
	}
	return count(r.outside(), "episode") + " of other splits (" + strings.Join(parts, ", ") + ")"
}
