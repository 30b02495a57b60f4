package leak

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// needle is a part of the fixed version that the repository's own code does not have.
type needle struct {
	text    string // that has it
	at, end int
	form    string // how it is changed: "", rot13, reversed, ...
	lines   int    // of the fixed version that it touches
	files   int    // other files that have it as it is, comments included
}

// needles are looked for.
type needles struct {
	scanner
	changes []Change
	own     map[string]bool // paths of the changes
	of      [ways]map[uint64]*needle
	names   map[uint64]bool // of changed files and functions
	source  source
}

func (x *needle) shown() string { return show(x.text, x.at, x.end) }

// maxNeedles bounds the needles of one way.
const maxNeedles = 40_000

func newNeedles(changes []Change) *needles {
	n := &needles{changes: changes, own: map[string]bool{}, names: map[uint64]bool{}}
	n.exact = !slices.ContainsFunc(changes, func(c Change) bool {
		return c.Fixed != nil && (c.Base == nil || !strings.EqualFold(*c.Base, *c.Fixed))
	})
	for w := range n.of {
		n.of[w] = map[uint64]*needle{}
	}
	for _, c := range changes {
		n.own[c.Path] = true
		if c.Fixed != nil {
			n.collect(c)
		}
	}
	for _, c := range changes {
		if c.Base != nil {
			t := n.read(*c.Base, isPython(c.Path))
			n.forget(t, func(hit) bool { return true })
		}
	}
	for _, c := range changes {
		if c.Fixed != nil {
			n.disguise(c)
		}
	}
	n.source = newSource()
	return n
}

// collect adds the parts of a fixed file.
func (n *needles) collect(c Change) {
	t := n.read(*c.Fixed, isPython(c.Path))
	had := map[string]bool{}
	if c.Base != nil {
		for line := range strings.Lines(*c.Base) {
			had[strings.TrimSpace(line)] = true
		}
	}
	within := functions(t.code)
	from, to := changedRegion(c, around)
	add := func(in string, toks []token, h hit) {
		at, end := toks[h.first].at, toks[h.last].end
		if end < from || at > to {
			return
		}
		if h.way == pair && !bothNew(*c.Fixed, at, end, had) || (h.way == whole || h.way == short) && had[lineAt(*c.Fixed, at)] {
			return
		}
		if !n.says(h.way, in, toks[h.first:h.last+1]) || len(n.of[h.way]) >= maxNeedles {
			return
		}
		if f := enclosing(within, at); (h.way == shape || h.way == naming) && (f == nil || end > f.end) {
			return
		}
		n.of[h.way][h.hash] = &needle{text: *c.Fixed, at: at, end: end, lines: strings.Count((*c.Fixed)[at:end], "\n") + 1}
	}
	n.exactHits(t.code, t.run, func(h hit) {
		if t.quoted != nil && connected(t.quoted, t.run[h.first].at, t.run[h.last].end-1) {
			return // prose of a message
		}
		if h.way != whole && h.way != short || startsLine(t.code, t.run[h.first].at) && endsLine(t.code, t.run[h.last].end) {
			add(t.code, t.run, h)
		}
	})
	n.exactHits(t.raw, t.toks, func(h hit) {
		if h.way == pair {
			add(t.raw, t.toks, h)
		}
	})
	if isPython(c.Path) {
		toks := n.strings(t)
		n.shapeHits(t, func(h hit) { add(t.code, toks, h) })
	}
	n.nameFunctions(c, t.code, within)
}

// nameFunctions notes the names that make a few words of the fix more than chance.
func (n *needles) nameFunctions(c Change, fixed string, within []function) {
	note := func(name string) {
		if toks := words(name, n.exact, nil); len(toks) == 1 && len(name) > 3 && !fixedNames[toks[0].hash] {
			n.names[toks[0].hash] = true
		}
	}
	note(strings.TrimSuffix(path.Base(c.Path), path.Ext(c.Path)))
	base := ""
	if c.Base != nil {
		base, _ = code(*c.Base)
	}
	for _, f := range within {
		if !strings.Contains(base, fixed[f.at:f.end]) {
			note(f.name)
		}
	}
}

// says reports whether tokens say enough to be no chance.
func (n *needles) says(w way, in string, toks []token) bool {
	seen, score := map[uint64]bool{}, 0
	for _, t := range toks {
		if !t.word || seen[t.hash] {
			continue
		}
		seen[t.hash] = true
		if score++; t.end-t.at >= 3 && !fixedNames[t.hash] && (in[t.at] < '0' || in[t.at] > '9') {
			score++
		}
	}
	switch w {
	case part:
		return score >= 4
	case whole:
		return score >= 4 && len(toks) >= 4 || score >= 7
	case short:
		return score >= 3 && len(toks) >= 2
	case pair:
		return score >= 6 && len(toks) >= 6
	case shape, naming:
		return len(seen) >= 5
	case body:
		return len(seen) >= 3
	}
	return score >= 5
}

// forget drops what a text has in its code, where there it counts.
func (n *needles) forget(t text, counts func(hit) bool) {
	drop := func(toks []token, h hit) {
		if x := n.of[h.way][h.hash]; x != nil && x.form == "" {
			at := h
			at.first, at.last = toks[h.first].at, toks[h.last].end
			if counts(at) {
				delete(n.of[h.way], h.hash)
			}
		}
	}
	n.exactHits(t.code, t.run, func(h hit) {
		if t.quoted == nil || !connected(t.quoted, t.run[h.first].at, t.run[h.last].end-1) {
			drop(t.run, h)
		}
	})
	if t.quoted != nil {
		toks := n.strings(t)
		n.shapeHits(t, func(h hit) { drop(toks, h) })
	}
}

// disguise adds the parts that are left in forms that no decoder undoes.
func (n *needles) disguise(c Change) {
	fixed, base := *c.Fixed, ""
	if isPython(c.Path) {
		fixed, _ = code(fixed)
	}
	from, to := changedRegion(c, 3)
	fixed = fixed[from:to]
	if c.Base != nil {
		back := Change{Base: c.Fixed, Fixed: c.Base}
		if base = *c.Base; isPython(c.Path) {
			base, _ = code(base)
		}
		from, to = changedRegion(back, 6)
		base = base[from:to]
	}
	for _, d := range disguises {
		other := n.scanner
		other.toks, other.run = nil, nil
		had, text := map[uint64]bool{}, d.turn(base)
		other.exactHits(text, words(text, n.exact, nil), func(h hit) { had[h.hash^uint64(h.way)] = true })
		text = d.turn(fixed)
		toks := words(text, n.exact, nil)
		other.exactHits(text, toks, func(h hit) {
			switch at, end := toks[h.first].at, toks[h.last].end; {
			case h.way != phrase && (h.way != whole || !startsLine(text, at) || !endsLine(text, end)):
			case had[h.hash^uint64(h.way)], n.of[h.way][h.hash] != nil, len(n.of[h.way]) >= 4*maxNeedles, !n.says(h.way, text, toks[h.first:h.last+1]):
			default:
				n.of[h.way][h.hash] = &needle{text: text, at: at, end: end, form: d.form, lines: 1}
			}
		})
	}
}

type disguised struct {
	form string
	turn func(string) string
}

var disguises = func() []disguised {
	out := []disguised{{"reversed", reversed}, {"reversed lines", func(text string) string {
		list := strings.Split(text, "\n")
		for i := range list {
			list[i] = reversed(list[i])
		}
		return strings.Join(list, "\n")
	}}}
	for by := rune(1); by < 26; by++ {
		form := "shifted letters"
		if by == 13 {
			form = "rot13"
		}
		out = append(out, disguised{form, func(text string) string {
			return strings.Map(func(c rune) rune { return shifted(c, by) }, text)
		}})
	}
	return out
}()

func shifted(c, by rune) rune {
	switch {
	case c >= 'a' && c <= 'z':
		return 'a' + (c-'a'+by)%26
	case c >= 'A' && c <= 'Z':
		return 'A' + (c-'A'+by)%26
	}
	return c
}

func reversed(text string) string {
	out := []rune(text)
	slices.Reverse(out)
	return string(out)
}

func lineAt(text string, at int) string {
	from := strings.LastIndexByte(text[:at], '\n') + 1
	line, _, _ := strings.Cut(text[from:], "\n")
	return strings.TrimSpace(line)
}

func bothNew(text string, at, end int, had map[string]bool) bool {
	return !had[lineAt(text, at)] && !had[lineAt(text, end-1)]
}

func startsLine(text string, at int) bool {
	return strings.TrimLeft(text[strings.LastIndexByte(text[:at], '\n')+1:at], " \t'\"`#") == ""
}

func endsLine(text string, end int) bool {
	rest, _, _ := strings.Cut(text[end:], "\n")
	return strings.TrimLeft(rest, " \t\r'\"`;,") == ""
}

var spaces = regexp.MustCompile(`\s+`)

func show(text string, at, end int) string {
	const most = 120
	from := strings.LastIndexByte(text[:at], '\n') + 1
	rest, _, _ := strings.Cut(text[end:], "\n")
	out := strings.TrimSpace(spaces.ReplaceAllString(text[from:end+len(rest)], " "))
	if len(out) > most {
		out = strings.ToValidUTF8(out[:most], "") + "…"
	}
	return out
}
