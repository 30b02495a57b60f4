package leak

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Kinds of findings.
const (
	KindPatch    = "patch"        // a diff of a file that the fix changes
	KindFile     = "file"         // a copy of a fixed file
	KindLines    = "lines"        // several lines of the fix in a row
	KindLine     = "line"         // a line of the fix, or an expression of it
	KindRenamed  = "renamed code" // code of the fix with other names or in another layout
	KindLocation = "location"     // a sentence that says where the bug is
)

// Finding is a place that shows the fix.
type Finding struct {
	Path  string
	Line  int    // in the file; 0 if the place is packed or encoded
	Kind  string // one of the constants
	Form  string // how it is packed or encoded, from outside to inside: "gzip, base64"; "" if it is not
	Token string // the beginning of what it shows
}

// Files calls each with the path and the content of every file of the repository, as often as it is
// called. A symlink's content is its target.
type Files func(each func(name string, data []byte) error) error

// maxFile bounds the bytes of a file that are searched.
const maxFile = 32 << 20

// MaxFindings bounds what Search returns.
const MaxFindings = 50

// Search looks for the fix in the files of the repository without it.
func Search(changes []Change, files Files) ([]Finding, error) {
	s, err := New(changes, files)
	if err != nil {
		return nil, err
	}
	err = files(func(name string, data []byte) error {
		s.File(name, data)
		return nil
	})
	return s.Findings(), err
}

// Searcher searches files for a fix. It is for one goroutine.
type Searcher struct {
	needles *needles
	found   []Finding
}

// New reads the repository's own code.
func New(changes []Change, files Files) (*Searcher, error) {
	n := newNeedles(changes)
	err := files(func(name string, data []byte) error {
		if len(data) <= maxText {
			n.readSource(name, string(data))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	n.subtract()
	return &Searcher{needles: n}, nil
}

// Findings returns what was found so far, at most MaxFindings, in the order of paths.
func (s *Searcher) Findings() []Finding {
	slices.SortStableFunc(s.found, func(a, b Finding) int { return cmp.Compare(a.Path, b.Path) })
	return s.found[:min(len(s.found), MaxFindings)]
}

// File searches one file: its name, its content and what is packed in it. It adds at most one finding of
// each kind, and none of a weaker kind than it has.
func (s *Searcher) File(name string, data []byte) {
	if len(s.found) >= MaxFindings {
		return
	}
	var found []Finding
	unpack(data[:min(len(data), maxFile)], func(form, text string) {
		for _, f := range s.text(name, form, text) {
			f.Path, f.Form = name, joinForms(form, f.Form)
			if form != "" {
				f.Line = 0
			}
			found = append(found, f)
		}
	})
	if t := s.needles.read(name, false); len(t.toks) >= partWords {
		if f := s.exact(t.raw, t.toks, true, false); f.Token != "" {
			f.Path, f.Line, f.Form = name, 0, joinForms("the file's name", f.Form)
			found = append(found, f)
		}
	}
	if len(found) > 0 {
		s.found = append(s.found, slices.MinFunc(found, func(a, b Finding) int {
			return cmp.Or(cmp.Compare(rank[a.Kind], rank[b.Kind]), cmp.Compare(strings.Count(a.Form, ","), strings.Count(b.Form, ",")))
		}))
	}
}

// rank orders the kinds by how much they say.
var rank = map[string]int{KindFile: 0, KindPatch: 1, KindLines: 2, KindLine: 3, KindRenamed: 4, KindLocation: 5}

func joinForms(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + ", " + b
}

// text searches a text.
func (s *Searcher) text(name, form, raw string) []Finding {
	var found []Finding
	own := form == "" && s.needles.own[name]
	for _, c := range s.needles.changes {
		if c.Fixed != nil && (c.Base != nil || name != c.Path) && len(*c.Fixed) >= smallest && strings.TrimSpace(raw) == strings.TrimSpace(*c.Fixed) {
			found = append(found, Finding{Kind: KindFile, Token: c.Path})
		}
	}
	if f := s.patch(raw); f.Token != "" {
		found = append(found, f)
	}
	if !isPython(name) || form != "" {
		if f := s.location(name, raw); f.Token != "" {
			found = append(found, f)
		}
	}
	t := s.needles.read(raw, true)
	if f := s.exact(raw, t.toks, own, own); f.Token != "" {
		found = append(found, f)
	}
	if f := s.exact(t.code, t.run, own, own); f.Token != "" {
		found = append(found, f)
	}
	if f := s.renamed(t); f.Token != "" {
		found = append(found, f)
	}
	return found
}

// exact finds parts of the fix by their words. near says that a few of them are enough everywhere,
// as the place is beside the bug.
func (s *Searcher) exact(text string, toks []token, near, own bool) Finding {
	n := s.needles
	var best Finding
	first, last, rows := -1, -1, 0
	n.exactHits(text, toks, func(h hit) {
		x := n.of[h.way][h.hash]
		if x == nil || (h.way == part || h.way == short) && !near && !n.named(toks, h.first, h.last) {
			return
		}
		kind := KindLine
		if h.way == pair {
			kind = KindLines
		}
		if h.way == phrase {
			if first < 0 || h.first > last+1 {
				first, rows = h.first, 0
			}
			last, rows = h.last, max(rows, x.lines)
			if rows > 1 && h.last-first >= 2*phraseWords {
				kind = KindLines
			}
		}
		if best.Token == "" || rank[kind] < rank[best.Kind] {
			best = Finding{Kind: kind, Token: x.shown(), Form: x.form, Line: 1 + strings.Count(text[:toks[h.first].at], "\n")}
		}
	})
	return best
}

// named reports whether a changed file or function is named near tokens.
func (n *needles) named(toks []token, first, last int) bool {
	const reach = 30
	for i := max(0, first-reach); i < min(len(toks), last+reach); i++ {
		if n.names[toks[i].hash] && (i < first || i > last) {
			return true
		}
	}
	return false
}

// enough is how many parts of a renamed copy are no chance.
const enough = 3

// renamed finds code of the fix with other names.
func (s *Searcher) renamed(t text) Finding {
	n := s.needles
	if len(n.of[shape])+len(n.of[naming])+len(n.of[body]) == 0 {
		return Finding{}
	}
	toks := n.strings(t)
	var found Finding
	hits := map[*needle]bool{}
	n.shapeHits(t, func(h hit) {
		x := n.of[h.way][h.hash]
		if x == nil || found.Token != "" {
			return
		}
		hits[x] = true
		if h.way == body || len(hits) >= enough {
			found = Finding{Kind: KindRenamed, Token: show(t.code, toks[h.first].at, toks[h.last].end), Line: 1 + strings.Count(t.code[:toks[h.first].at], "\n")}
		}
	})
	return found
}

// String is the finding as one sentence.
func (f Finding) String() string {
	place := f.Path
	if f.Line > 0 {
		place = fmt.Sprintf("%s:%d", f.Path, f.Line)
	}
	if f.Form != "" {
		place += " (" + f.Form + ")"
	}
	return fmt.Sprintf("%s shows the fix, %s: %q", place, f.Kind, f.Token)
}
