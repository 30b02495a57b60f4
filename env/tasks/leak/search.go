package leak

import (
	"cmp"
	"slices"
	"strings"
)

// Kinds of findings.
const (
	KindPatch    = "patch"        // a diff of a file that the fix changes
	KindFile     = "file"         // a copy of a fixed file
	KindLines    = "lines"        // several lines of the fix in a row
	KindLine     = "line"         // a line of the fix, or a part of one
	KindRenamed  = "renamed code" // code of the fix with other names or in another layout
	KindLocation = "location"     // a sentence that says where the bug is
)

// Finding is a place in the repository that reveals the fix.
type Finding struct {
	Path    string
	Line    int    // line in the file; 0 if the place is packed or encoded
	Kind    string // one of the constants whose names start with Kind
	Form    string // how the place is packed or encoded, outermost first: "gzip, base64"; "" if it is not
	Excerpt string // the beginning of the revealing text
}

// Files calls each with the path and the content of every file of the repository. It may be called several times. The
// content of a symlink is its target.
type Files func(each func(name string, data []byte) error) error

// maxFile is the number of bytes that are searched at the start of each file.
const maxFile = 32 << 20

// MaxFindings is the largest number of findings that a search returns.
const MaxFindings = 50

// Search searches the files of a repository for a fix. The files must be those before the fix.
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

// Searcher searches files for a fix. It is not safe for concurrent use.
type Searcher struct {
	needles *needles
	found   []Finding
}

// New returns a Searcher for a fix. It reads the repository's own code, because parts of the fix that this code
// contains are not findings.
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

// Findings returns the findings so far, at most MaxFindings, sorted by path.
func (s *Searcher) Findings() []Finding {
	slices.SortStableFunc(s.found, func(a, b Finding) int { return cmp.Compare(a.Path, b.Path) })
	return s.found[:min(len(s.found), MaxFindings)]
}

// File searches one file: its name, its content, and what is packed or encoded in it. It adds at most one finding, of
// the strongest kind.
func (s *Searcher) File(name string, data []byte) {
	if len(s.found) >= MaxFindings {
		return
	}
	var found []Finding
	unpack(data[:min(len(data), maxFile)], func(form, text string) {
		for _, f := range s.searchText(name, form, text) {
			f.Path, f.Form = name, joinForms(form, f.Form)
			if form != "" {
				f.Line = 0
			}
			found = append(found, f)
		}
	})
	if t := s.needles.read(name, false); len(t.toks) >= shortPhraseWords {
		if f := s.findExact(t.raw, t.toks, true); f.Excerpt != "" {
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

// rank orders the kinds of findings: the one that reveals most comes first.
var rank = map[string]int{KindFile: 0, KindPatch: 1, KindLines: 2, KindLine: 3, KindRenamed: 4, KindLocation: 5}

func joinForms(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + ", " + b
}

// searchText searches the content of a file, or a text that was unpacked from it. It returns at most one finding of
// each search.
func (s *Searcher) searchText(name, form, raw string) []Finding {
	var found []Finding
	isChanged := form == "" && s.needles.changed[name]
	for _, c := range s.needles.changes {
		if c.Fixed != nil && (c.Base != nil || name != c.Path) && len(*c.Fixed) >= minBytes && strings.TrimSpace(raw) == strings.TrimSpace(*c.Fixed) {
			found = append(found, Finding{Kind: KindFile, Excerpt: c.Path})
		}
	}
	if f := s.findPatch(raw); f.Excerpt != "" {
		found = append(found, f)
	}
	if !isPython(name) || form != "" {
		if f := s.findLocation(name, raw); f.Excerpt != "" {
			found = append(found, f)
		}
	}
	t := s.needles.read(raw, true)
	if f := s.findExact(raw, t.toks, isChanged); f.Excerpt != "" {
		found = append(found, f)
	}
	if f := s.findExact(t.code, t.codeToks, isChanged); f.Excerpt != "" {
		found = append(found, f)
	}
	if f := s.findRenamed(t); f.Excerpt != "" {
		found = append(found, f)
	}
	return found
}

// findExact finds parts of the fix that keep their names. A short part is a finding only near the name of a changed
// file or function, unless acceptShort is set.
func (s *Searcher) findExact(text string, toks []token, acceptShort bool) Finding {
	n := s.needles
	var best Finding
	first, last, lines := -1, -1, 0 // of a run of overlapping phrases
	n.exactHits(text, toks, func(h hit) {
		x := n.byKind[h.kind][h.hash]
		if x == nil || (h.kind == shortPhrase || h.kind == shortLine) && !acceptShort && !n.isNamed(toks, h.first, h.last) {
			return
		}
		kind := KindLine
		if h.kind == linePair {
			kind = KindLines
		}
		if h.kind == phrase {
			if first < 0 || h.first > last+1 {
				first, lines = h.first, 0
			}
			last, lines = h.last, max(lines, x.lines)
			if lines > 1 && h.last-first >= 2*phraseWords {
				kind = KindLines
			}
		}
		if best.Excerpt == "" || rank[kind] < rank[best.Kind] {
			best = Finding{Kind: kind, Excerpt: x.excerpt(), Form: x.form, Line: 1 + strings.Count(text[:toks[h.first].at], "\n")}
		}
	})
	return best
}

// isNamed reports whether the name of a changed file or function occurs near the tokens from first to last.
func (n *needles) isNamed(toks []token, first, last int) bool {
	const reach = 30 // tokens
	for i := max(0, first-reach); i < min(len(toks), last+reach); i++ {
		if n.names[toks[i].hash] && (i < first || i > last) {
			return true
		}
	}
	return false
}

// minRenamedHits is the smallest number of matching parts of renamed code that is not a coincidence.
const minRenamedHits = 3

// findRenamed finds code of the fix with other names.
func (s *Searcher) findRenamed(t text) Finding {
	n := s.needles
	if len(n.byKind[codeShape])+len(n.byKind[shortShape])+len(n.byKind[wholeFunction]) == 0 {
		return Finding{}
	}
	toks := n.mergeStrings(t)
	var found Finding
	hits := map[*needle]bool{}
	n.shapeHits(t, func(h hit) {
		x := n.byKind[h.kind][h.hash]
		if x == nil || found.Excerpt != "" {
			return
		}
		hits[x] = true
		if h.kind == wholeFunction || len(hits) >= minRenamedHits {
			found = Finding{Kind: KindRenamed, Excerpt: excerpt(t.code, toks[h.first].at, toks[h.last].end), Line: 1 + strings.Count(t.code[:toks[h.first].at], "\n")}
		}
	})
	return found
}
