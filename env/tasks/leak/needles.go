package leak

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// needle is a part of the fixed files that the repository's own code does not contain.
type needle struct {
	text    string // the text that contains it
	at, end int    // byte offsets in text
	form    string // transformation of the fixed file: "" for none, "rot13", "reversed" and so on
	lines   int    // number of lines that it touches
	files   int    // number of unchanged files that contain it, in code or comments
}

// needles is the set of needles to search for.
type needles struct {
	scanner
	changes []Change
	changed map[string]bool // paths of the changes
	byKind  [matchKinds]map[uint64]*needle
	names   map[uint64]bool // hashes of the names of changed files and functions
	usage   usage
}

func (x *needle) excerpt() string { return excerpt(x.text, x.at, x.end) }

// maxNeedles is the largest number of needles of one kind.
const maxNeedles = 40_000

func newNeedles(changes []Change) *needles {
	n := &needles{changes: changes, changed: map[string]bool{}, names: map[uint64]bool{}}
	n.exact = !slices.ContainsFunc(changes, func(c Change) bool {
		return c.Fixed != nil && (c.Base == nil || !strings.EqualFold(*c.Base, *c.Fixed))
	})
	for kind := range n.byKind {
		n.byKind[kind] = map[uint64]*needle{}
	}
	for _, c := range changes {
		n.changed[c.Path] = true
		if c.Fixed != nil {
			n.collect(c)
		}
	}
	for _, c := range changes {
		if c.Base != nil {
			t := n.read(*c.Base, isPython(c.Path))
			n.removeCode(t, func(hit) bool { return true })
		}
	}
	for _, c := range changes {
		if c.Fixed != nil {
			n.addTransformed(c)
		}
	}
	n.usage = newUsage()
	return n
}

// collect adds needles from a fixed file.
func (n *needles) collect(c Change) {
	t := n.read(*c.Fixed, isPython(c.Path))
	baseLines := map[string]bool{}
	if c.Base != nil {
		for line := range strings.Lines(*c.Base) {
			baseLines[strings.TrimSpace(line)] = true
		}
	}
	funcs := functions(t.code)
	from, to := changedRegion(c, contextLines)
	add := func(in string, toks []token, h hit) {
		at, end := toks[h.first].at, toks[h.last].end
		if end < from || at > to {
			return
		}
		if h.kind == linePair && !linesAreNew(*c.Fixed, at, end, baseLines) || (h.kind == wholeLine || h.kind == shortLine) && baseLines[lineAt(*c.Fixed, at)] {
			return
		}
		if !n.isDistinctive(h.kind, in, toks[h.first:h.last+1]) || len(n.byKind[h.kind]) >= maxNeedles {
			return
		}
		if f := enclosing(funcs, at); (h.kind == codeShape || h.kind == shortShape) && (f == nil || end > f.end) {
			return
		}
		n.byKind[h.kind][h.hash] = &needle{text: *c.Fixed, at: at, end: end, lines: strings.Count((*c.Fixed)[at:end], "\n") + 1}
	}
	n.exactHits(t.code, t.codeToks, func(h hit) {
		if t.inString != nil && allInString(t.inString, t.codeToks[h.first].at, t.codeToks[h.last].end-1) {
			return // words in a string are prose
		}
		if h.kind != wholeLine && h.kind != shortLine || startsLine(t.code, t.codeToks[h.first].at) && endsLine(t.code, t.codeToks[h.last].end) {
			add(t.code, t.codeToks, h)
		}
	})
	n.exactHits(t.raw, t.toks, func(h hit) {
		if h.kind == linePair {
			add(t.raw, t.toks, h)
		}
	})
	if isPython(c.Path) {
		toks := n.mergeStrings(t)
		n.shapeHits(t, func(h hit) { add(t.code, toks, h) })
	}
	n.collectNames(c, t.code, funcs)
}

// collectNames records the names of the changed file and its changed functions. A few words of the fix are a finding
// only near one of these names.
func (n *needles) collectNames(c Change, fixed string, funcs []function) {
	add := func(name string) {
		if toks := words(name, n.exact, nil); len(toks) == 1 && len(name) > 3 && !fixedNames[toks[0].hash] {
			n.names[toks[0].hash] = true
		}
	}
	add(strings.TrimSuffix(path.Base(c.Path), path.Ext(c.Path)))
	base := ""
	if c.Base != nil {
		base, _ = code(*c.Base)
	}
	for _, f := range funcs {
		if !strings.Contains(base, fixed[f.at:f.end]) {
			add(f.name)
		}
	}
}

// isDistinctive reports whether tokens are so distinctive that a match is not a coincidence.
func (n *needles) isDistinctive(kind matchKind, in string, toks []token) bool {
	seen, score, names := map[uint64]bool{}, 0, 0
	for _, t := range toks {
		if !t.word || seen[t.hash] {
			continue
		}
		seen[t.hash] = true
		if score++; t.end-t.at >= 3 && !fixedNames[t.hash] && (in[t.at] < '0' || in[t.at] > '9') {
			score++
			names++
		}
	}
	switch kind {
	case shortPhrase: // calculations with the same short variables, and ends of statements, resemble each other
		return score >= 4 && names >= 2 && !strings.Contains(in[toks[0].at:toks[len(toks)-1].end], "\n")
	case wholeLine:
		return score >= 4 && len(toks) >= 4 || score >= 7
	case shortLine:
		return score >= 3 && len(toks) >= 2
	case linePair:
		return score >= 6 && len(toks) >= 6
	case codeShape, shortShape:
		return len(seen) >= 5
	case wholeFunction:
		return len(seen) >= 3
	}
	return score >= 5 && names > 0
}

// removeCode removes the needles that the code of a text contains, if counts returns true for them. The hits passed to
// counts hold byte offsets instead of indexes of tokens.
func (n *needles) removeCode(t text, counts func(hit) bool) {
	drop := func(toks []token, h hit) {
		if x := n.byKind[h.kind][h.hash]; x != nil && x.form == "" {
			byOffset := h
			byOffset.first, byOffset.last = toks[h.first].at, toks[h.last].end
			if counts(byOffset) {
				delete(n.byKind[h.kind], h.hash)
			}
		}
	}
	n.exactHits(t.code, t.codeToks, func(h hit) {
		if t.inString == nil || !allInString(t.inString, t.codeToks[h.first].at, t.codeToks[h.last].end-1) {
			drop(t.codeToks, h)
		}
	})
	if t.inString != nil {
		toks := n.mergeStrings(t)
		n.shapeHits(t, func(h hit) { drop(toks, h) })
	}
}

// addTransformed adds needles from transformed texts of a fixed file, for the transformations that the unpacker does
// not undo.
func (n *needles) addTransformed(c Change) {
	fixed, base := *c.Fixed, ""
	if isPython(c.Path) {
		fixed, _ = code(fixed)
	}
	from, to := changedRegion(c, 3)
	fixed = fixed[from:to]
	if c.Base != nil {
		reverted := Change{Base: c.Fixed, Fixed: c.Base}
		if base = *c.Base; isPython(c.Path) {
			base, _ = code(base)
		}
		from, to = changedRegion(reverted, 6)
		base = base[from:to]
	}
	for _, t := range transforms {
		other := n.scanner
		other.toks, other.codeToks = nil, nil
		inBase, text := map[uint64]bool{}, t.apply(base)
		other.exactHits(text, words(text, n.exact, nil), func(h hit) { inBase[h.hash^uint64(h.kind)] = true })
		text = t.apply(fixed)
		toks := words(text, n.exact, nil)
		other.exactHits(text, toks, func(h hit) {
			switch at, end := toks[h.first].at, toks[h.last].end; {
			case h.kind != phrase && (h.kind != wholeLine || !startsLine(text, at) || !endsLine(text, end)):
			case inBase[h.hash^uint64(h.kind)], n.byKind[h.kind][h.hash] != nil, len(n.byKind[h.kind]) >= 4*maxNeedles, !n.isDistinctive(h.kind, text, toks[h.first:h.last+1]):
			default:
				n.byKind[h.kind][h.hash] = &needle{text: text, at: at, end: end, form: t.form, lines: 1}
			}
		})
	}
}

// transform is a simple way to hide a text.
type transform struct {
	form  string // its name in findings
	apply func(string) string
}

var transforms = func() []transform {
	out := []transform{{"reversed", reverse}, {"reversed lines", func(text string) string {
		list := strings.Split(text, "\n")
		for i := range list {
			list[i] = reverse(list[i])
		}
		return strings.Join(list, "\n")
	}}}
	out = append(out, transform{"rot47", func(text string) string {
		return strings.Map(func(c rune) rune {
			if c > ' ' && c < 127 {
				return '!' + (c-'!'+47)%94
			}
			return c
		}, text)
	}})
	for by := rune(1); by < 26; by++ {
		form := "shifted letters"
		if by == 13 {
			form = "rot13"
		}
		out = append(out, transform{form, func(text string) string {
			return strings.Map(func(c rune) rune { return shiftLetter(c, by) }, text)
		}})
	}
	return out
}()

// shiftLetter moves an ASCII letter by some places in the alphabet.
func shiftLetter(c, by rune) rune {
	switch {
	case c >= 'a' && c <= 'z':
		return 'a' + (c-'a'+by)%26
	case c >= 'A' && c <= 'Z':
		return 'A' + (c-'A'+by)%26
	}
	return c
}

func reverse(text string) string {
	out := []rune(text)
	slices.Reverse(out)
	return string(out)
}

// lineAt returns the line around an offset, without white space at its ends.
func lineAt(text string, at int) string {
	from := strings.LastIndexByte(text[:at], '\n') + 1
	line, _, _ := strings.Cut(text[from:], "\n")
	return strings.TrimSpace(line)
}

// linesAreNew reports whether neither the first nor the last line of text[at:end] is in the base file.
func linesAreNew(text string, at, end int, baseLines map[string]bool) bool {
	return !baseLines[lineAt(text, at)] && !baseLines[lineAt(text, end-1)]
}

// startsLine reports whether only white space, quotes and comment signs precede an offset in its line.
func startsLine(text string, at int) bool {
	return strings.TrimLeft(text[strings.LastIndexByte(text[:at], '\n')+1:at], " \t'\"`#") == ""
}

// endsLine reports whether only white space, quotes and separators follow an offset in its line.
func endsLine(text string, end int) bool {
	rest, _, _ := strings.Cut(text[end:], "\n")
	return strings.TrimLeft(rest, " \t\r'\"`;,") == ""
}

var spaces = regexp.MustCompile(`\s+`)

// excerpt returns the lines around text[at:end] as one line of at most 120 bytes.
func excerpt(text string, at, end int) string {
	const maxLen = 120
	from := strings.LastIndexByte(text[:at], '\n') + 1
	rest, _, _ := strings.Cut(text[end:], "\n")
	out := strings.TrimSpace(spaces.ReplaceAllString(text[from:end+len(rest)], " "))
	if len(out) > maxLen {
		out = strings.ToValidUTF8(out[:maxLen], "") + "…"
	}
	return out
}
