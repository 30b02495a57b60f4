package builtin

import (
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff/lcs"

	"github.com/tracesmith/tracesmith/env"
)

// maxEvents limits the events of one edit. If there are more, editEvents merges them into one.
const maxEvents = 100

// editEvents returns the lines that the splices of an edit replaced, from last to first, so
// that each event can be applied with the old line numbers. Lines that a splice touches but
// does not change are not part of an event, so that their breakpoints stay. editEvents ignores
// line endings.
func editEvents(rel, old string, splices []splice) []env.Edit {
	var out []env.Edit
	if body, hasBOM := strings.CutPrefix(old, bom); hasBOM { // not part of line 1
		old = body
		splices = slices.Clone(splices)
		for i := range splices {
			splices[i].from -= len(bom)
			splices[i].to -= len(bom)
		}
	}
	first, at := 1, 0 // a line number and the offset at which the line begins
	for len(splices) > 0 {
		lo, hi, n := touchedLines(old, splices)
		first, at = first+strings.Count(old[at:lo], "\n"), lo
		segment := make([]splice, n)
		for i, c := range splices[:n] {
			segment[i] = splice{c.from - lo, c.to - lo, c.text}
		}
		oldLines := plainLines(old[lo:hi])
		newLines := plainLines(applySplices(old[lo:hi], segment))
		for _, d := range lcs.DiffLines(oldLines, newLines) {
			out = append(out, env.Edit{File: rel, First: first + d.Start, Removed: d.End - d.Start, Added: d.ReplEnd - d.ReplStart})
		}
		splices = splices[n:]
	}
	switch {
	case len(out) == 0: // only line endings changed
		return []env.Edit{{File: rel, First: 1}}
	case len(out) > maxEvents:
		last, added := out[len(out)-1], 0
		for _, e := range out {
			added += e.Added - e.Removed
		}
		removed := last.First + last.Removed - out[0].First
		return []env.Edit{{File: rel, First: out[0].First, Removed: removed, Added: removed + added}}
	}
	slices.Reverse(out)
	return out
}

// touchedLines returns the start and end of the lines that the first n splices touch. It
// chooses the largest n for which each of these splices shares a line with the one before it.
func touchedLines(old string, splices []splice) (lo, hi, n int) {
	lo = strings.LastIndexByte(old[:splices[0].from], '\n') + 1
	for n < len(splices) && (n == 0 || splices[n].from < hi) {
		c := splices[n]
		atLineStart := strings.HasSuffix(c.text, "\n") || c.text == "" && (c.from == 0 || old[c.from-1] == '\n')
		if hi = c.to; !atLineStart || hi > 0 && old[hi-1] != '\n' { // the rest of the line stays
			if end := strings.IndexByte(old[hi:], '\n'); end >= 0 {
				hi += end + 1
			} else {
				hi = len(old)
			}
		}
		n++
	}
	return lo, hi, n
}

// plainLines returns the lines of a text without their line endings.
func plainLines(text string) []string {
	all := strings.Split(text, "\n")
	if all[len(all)-1] == "" {
		all = all[:len(all)-1]
	}
	for i := range all {
		all[i] = strings.TrimSuffix(all[i], "\r")
	}
	return all
}
