package leak

import "strings"

// way is one of the ways in which a text can repeat a part of another.
type way int

const (
	phrase way = iota // some words in a row
	part              // fewer words in a row, which need a name beside them to count
	whole             // a whole line
	short             // a whole line that says too little by itself
	pair              // two lines, comments included
	shape             // words in a row, with any names
	naming            // fewer words in a row, with any names except for attributes and what is called
	body              // a whole function, with any names
	ways
)

// Words in a row of each way.
const (
	phraseWords = 8
	partWords   = 5
	shapeWords  = 26
	namingWords = 16
	maxUnit     = 60 // words of a line that are compared as a whole
	minBody     = 9
	minLongBody = 12 // of a body that names no builtin
)

// hit is a part of a text: tokens from first to last, in the way that the hash was made.
type hit struct {
	way         way
	hash        uint64
	first, last int
}

// text is a text made ready for comparison.
type text struct {
	raw  string
	toks []token
	code string // raw without what does not run; raw itself if it is no Python
	run  []token
	// quoted has, for each byte of code, whether it is in a string.
	quoted []bool
}

// scanner finds the parts of texts. It keeps its memory from text to text.
type scanner struct {
	exact      bool // names that differ in case differ
	toks, run  []token
	last       map[uint64]int
	apart      []int
	free, kept []bool
}

func (s *scanner) read(raw string, python bool) text {
	t := text{raw: raw}
	s.toks = words(raw, s.exact, s.toks)
	t.toks = s.toks
	t.code, t.run = raw, s.toks
	if python {
		t.code, t.quoted = code(raw)
		s.run = words(t.code, s.exact, s.run)
		t.run = s.run
	}
	return t
}

// exactHits are the parts of tokens that keep the names.
func (s *scanner) exactHits(text string, toks []token, each func(hit)) {
	windows(toks, phraseWords, func(hash uint64, first int) { each(hit{phrase, hash, first, first + phraseWords - 1}) })
	windows(toks, partWords, func(hash uint64, first int) { each(hit{part, hash, first, first + partWords - 1}) })
	for i := range toks {
		if toks[i].opens {
			units(text, toks, i, func(last int) {
				hash := hashOf(toks[i : last+1])
				each(hit{whole, hash, i, last})
				each(hit{short, hash, i, last})
			})
		}
	}
	lines(text, toks, func(a, b, last int) {
		each(hit{pair, hashOf(toks[a:b])*fnvPrime ^ hashOf(toks[b:last+1]), a, last})
	})
}

// units calls each with the last token of what starts at token i and ends at a quote or with the line.
func units(text string, toks []token, i int, each func(last int)) {
	for k := i; k < len(toks) && k-i < maxUnit; k++ {
		gap := text[toks[k].end:]
		if k+1 < len(toks) {
			gap = text[toks[k].end:toks[k+1].at]
		}
		end := k+1 == len(toks) || strings.IndexByte(gap, '\n') >= 0
		if end && k > i && text[toks[k].at:toks[k].end] == "." {
			each(k - 1)
		}
		if end || strings.ContainsAny(gap, "'\"`#") {
			each(k)
		}
		if end {
			return
		}
	}
}

// lines calls each with the first tokens of two lines and the last of the second.
func lines(text string, toks []token, each func(a, b, last int)) {
	a, b := -1, 0
	for i := 1; i <= len(toks); i++ {
		if i < len(toks) && strings.IndexByte(text[toks[i-1].end:toks[i].at], '\n') < 0 {
			continue
		}
		if a >= 0 && i-a <= 2*maxUnit {
			each(a, b, i-1)
		}
		a, b = b, i
	}
}

// shapeHits are the parts of code that do not depend on names.
func (s *scanner) shapeHits(t text, each func(hit)) {
	toks := s.strings(t)
	if len(toks) < minBody {
		return
	}
	s.measure(t.code, toks)
	for i := range toks {
		if i+namingWords <= len(toks) {
			each(hit{naming, s.window(toks, i, namingWords, s.kept), i, i + namingWords - 1})
		}
		if i+shapeWords <= len(toks) {
			each(hit{shape, s.window(toks, i, shapeWords, s.free), i, i + shapeWords - 1})
		}
	}
	s.bodies(t, toks, each)
}

// strings returns the tokens of code with each string as one.
func (s *scanner) strings(t text) []token {
	if t.quoted == nil {
		return t.run
	}
	out := t.run[:0:len(t.run)]
	out = append(make([]token, 0, len(t.run)), out...)
	inside := -1
	for _, tok := range t.run {
		if !t.quoted[tok.at] {
			out, inside = append(out, tok), -1
			continue
		}
		if inside < 0 || !connected(t.quoted, inside, tok.at) {
			out = append(out, token{hash: 1, at: tok.at, end: tok.end})
		}
		inside = tok.at
	}
	return out
}

func connected(quoted []bool, from, to int) bool {
	for i := from; i <= to; i++ {
		if !quoted[i] {
			return false
		}
	}
	return true
}

// measure finds, for each name, how far back the same name is, and which names can be changed.
func (s *scanner) measure(code string, toks []token) {
	if s.last == nil {
		s.last = map[uint64]int{}
	}
	clear(s.last)
	s.apart, s.free, s.kept = s.apart[:0], s.free[:0], s.kept[:0]
	for i, t := range toks {
		free := t.word && (code[t.at] < '0' || code[t.at] > '9') && !fixedNames[t.hash]
		apart := 0
		if free {
			if at, seen := s.last[t.hash]; seen {
				apart = i - at
			}
			s.last[t.hash] = i
		}
		local := free && (i == 0 || code[toks[i-1].at] != '.' || toks[i-1].word) && (i+1 == len(toks) || code[toks[i+1].at] != '(')
		s.apart, s.free, s.kept = append(s.apart, apart), append(s.free, free), append(s.kept, local)
	}
}

// window is the hash of n tokens from first, where a name that may change counts as the distance to
// the same name before it.
func (s *scanner) window(toks []token, first, n int, free []bool) (hash uint64) {
	for i := first; i < first+n; i++ {
		x := toks[i].hash
		if free[i] {
			if x = 2; s.apart[i] > 0 && s.apart[i] <= i-first {
				x = uint64(s.apart[i]) + 2
			}
		}
		hash = (hash ^ x) * fnvPrime
	}
	return hash
}

// bodies calls each with the functions, without their names.
func (s *scanner) bodies(t text, toks []token, each func(hit)) {
	at := 0
	for _, f := range functions(t.code) {
		for at < len(toks) && toks[at].at < f.at {
			at++
		}
		first, last := at, at
		for last < len(toks) && toks[last].at < f.end {
			last++
		}
		for first < last && t.code[toks[first].at] != '(' {
			first++
		}
		builtin := false
		for _, tok := range toks[first:last] {
			builtin = builtin || tok.word && fixedNames[tok.hash] && tok.end-tok.at == 3
		}
		if n := last - first; n < minBody || n < minLongBody && !builtin || n > 4000 {
			continue
		}
		each(hit{body, s.window(toks, first, last-first, s.free), first, last - 1})
	}
}
