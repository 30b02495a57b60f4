package builtin

import (
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff/lcs"

	"github.com/tracesmith/tracesmith/env"
)

// maxChanges of one edit are told apart; more are told as one.
const maxChanges = 100

// changed says which lines the splices of an edit replaced, from the last to the
// first, so that each can be applied by itself with the old line numbers.
// Within the lines that a splice touches those that stay are found, so that
// breakpoints on them stay, too. Line ends do not count.
func changed(rel, old string, cuts []splice) []env.Edit {
	var out []env.Edit
	if body, marked := strings.CutPrefix(old, bom); marked { // no part of line 1
		old = body
		cuts = slices.Clone(cuts)
		for i := range cuts {
			cuts[i].from -= len(bom)
			cuts[i].to -= len(bom)
		}
	}
	first, at := 1, 0 // the line that begins at an offset
	for len(cuts) > 0 {
		lo, hi, n := touched(old, cuts)
		first, at = first+strings.Count(old[at:lo], "\n"), lo
		segment := make([]splice, n)
		for i, c := range cuts[:n] {
			segment[i] = splice{c.from - lo, c.to - lo, c.text}
		}
		was := plainLines(old[lo:hi])
		now := plainLines(apply(old[lo:hi], segment))
		for _, d := range lcs.DiffLines(was, now) {
			out = append(out, env.Edit{File: rel, First: first + d.Start, Removed: d.End - d.Start, Added: d.ReplEnd - d.ReplStart})
		}
		cuts = cuts[n:]
	}
	switch {
	case len(out) == 0: // nothing but line ends: no line moves
		return []env.Edit{{File: rel, First: 1}}
	case len(out) > maxChanges:
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

// touched is the whole lines, as offsets, that the first splices touch, and how
// many splices these lines hold.
func touched(old string, cuts []splice) (lo, hi, n int) {
	lo = strings.LastIndexByte(old[:cuts[0].from], '\n') + 1
	for n < len(cuts) && (n == 0 || cuts[n].from < hi) {
		c := cuts[n]
		begun := strings.HasSuffix(c.text, "\n") || c.text == "" && (c.from == 0 || old[c.from-1] == '\n')
		if hi = c.to; !begun || hi > 0 && old[hi-1] != '\n' { // the rest of a line stays
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

// plainLines are the lines of a text without their ends.
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
