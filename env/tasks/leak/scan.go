package leak

import "strings"

// matchKind is a way in which one text can repeat a part of another.
type matchKind int

const (
	phrase        matchKind = iota // several words in a row
	shortPhrase                    // fewer words in a row, which count only near the name of a changed file or function
	wholeLine                      // a whole line
	shortLine                      // a whole line that counts only near such a name
	linePair                       // two lines, comments included
	codeShape                      // several words in a row, with any names
	shortShape                     // fewer words in a row, with any names except for attributes and called functions
	wholeFunction                  // a whole function, with any names
	matchKinds                     // number of kinds
)

// Lengths of matches, in tokens.
const (
	phraseWords           = 8
	shortPhraseWords      = 5
	shapeWords            = 26
	shortShapeWords       = 16
	maxLineWords          = 60 // longer lines are not compared as a whole
	minFunctionWords      = 9
	minPlainFunctionWords = 12   // for a function that does not use a builtin
	maxFunctionWords      = 4000 // longer functions are not compared as a whole
)

// hit is a part of a text that may match a needle: the tokens from first to last.
type hit struct {
	kind        matchKind
	hash        uint64
	first, last int
}

// text is a text with its tokens.
type text struct {
	raw      string
	toks     []token
	code     string // raw without comments and other text that does not run; the same as raw if it is not Python
	codeToks []token
	inString []bool // for each byte of code, whether it is in a string; nil if raw is not Python
}

// scanner splits texts into the parts that are compared. It reuses its memory, so a text is valid only until the next
// one is read.
type scanner struct {
	exact            bool // words that differ only in case differ
	toks, codeToks   []token
	last             map[uint64]int // index of the last token of each name, in measureNames
	distance         []int          // see measureNames
	renamable, local []bool         // see measureNames
}

// read splits a text into tokens. python says whether to look for Python's strings and for code that does not run.
func (s *scanner) read(raw string, python bool) text {
	t := text{raw: raw}
	s.toks = words(raw, s.exact, s.toks)
	t.toks = s.toks
	t.code, t.codeToks = raw, s.toks
	if python {
		t.code, t.inString = code(raw)
		s.codeToks = words(t.code, s.exact, s.codeToks)
		t.codeToks = s.codeToks
	}
	return t
}

// exactHits calls each with the parts of a text that are compared including their names.
func (s *scanner) exactHits(text string, toks []token, each func(hit)) {
	windows(toks, phraseWords, func(hash uint64, first int) { each(hit{phrase, hash, first, first + phraseWords - 1}) })
	windows(toks, shortPhraseWords, func(hash uint64, first int) { each(hit{shortPhrase, hash, first, first + shortPhraseWords - 1}) })
	for i := range toks {
		if toks[i].startsUnit {
			lineUnits(text, toks, i, func(last int) {
				hash := hashOf(toks[i : last+1])
				each(hit{wholeLine, hash, i, last})
				each(hit{shortLine, hash, i, last})
			})
		}
	}
	linePairs(text, toks, func(a, b, last int) {
		each(hit{linePair, hashOf(toks[a:b])*fnvPrime ^ hashOf(toks[b:last+1]), a, last})
	})
}

// lineUnits calls each with the last token of every part of a line that starts at token i. Such a part ends at a quote,
// at a comment or at the end of the line.
func lineUnits(text string, toks []token, i int, each func(last int)) {
	for k := i; k < len(toks) && k-i < maxLineWords; k++ {
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

// linePairs calls each for every two lines in a row: a and b are their first tokens, last is the last of the second.
func linePairs(text string, toks []token, each func(a, b, last int)) {
	a, b := -1, 0
	for i := 1; i <= len(toks); i++ {
		if i < len(toks) && strings.IndexByte(text[toks[i-1].end:toks[i].at], '\n') < 0 {
			continue
		}
		if a >= 0 && i-a <= 2*maxLineWords {
			each(a, b, i-1)
		}
		a, b = b, i
	}
}

// shapeHits calls each with the parts of code that are compared without their names.
func (s *scanner) shapeHits(t text, each func(hit)) {
	toks := s.mergeStrings(t)
	if len(toks) < minFunctionWords {
		return
	}
	s.measureNames(t.code, toks)
	for i := range toks {
		if i+shortShapeWords <= len(toks) {
			each(hit{shortShape, s.shapeHash(toks, i, shortShapeWords, s.local), i, i + shortShapeWords - 1})
		}
		if i+shapeWords <= len(toks) {
			each(hit{codeShape, s.shapeHash(toks, i, shapeWords, s.renamable), i, i + shapeWords - 1})
		}
	}
	s.functionHits(t, toks, each)
}

// mergeStrings returns the tokens of the code, with each string as a single token.
func (s *scanner) mergeStrings(t text) []token {
	if t.inString == nil {
		return t.codeToks
	}
	out := t.codeToks[:0:len(t.codeToks)]
	out = append(make([]token, 0, len(t.codeToks)), out...)
	inside := -1
	for _, tok := range t.codeToks {
		if !t.inString[tok.at] {
			out, inside = append(out, tok), -1
			continue
		}
		if inside < 0 || !allInString(t.inString, inside, tok.at) {
			out = append(out, token{hash: 1, at: tok.at, end: tok.end}) // all strings are equal
		}
		inside = tok.at
	}
	return out
}

// allInString reports whether all bytes from one offset to another are in strings.
func allInString(inString []bool, from, to int) bool {
	for i := from; i <= to; i++ {
		if !inString[i] {
			return false
		}
	}
	return true
}

// measureNames sets, for each token, the distance to the previous token of the same name, whether a copy could use
// another name, and whether the token is a local name: neither an attribute nor a called function.
func (s *scanner) measureNames(code string, toks []token) {
	if s.last == nil {
		s.last = map[uint64]int{}
	}
	clear(s.last)
	s.distance, s.renamable, s.local = s.distance[:0], s.renamable[:0], s.local[:0]
	for i, t := range toks {
		renamable := t.word && (code[t.at] < '0' || code[t.at] > '9') && !fixedNames[t.hash]
		distance := 0
		if renamable {
			if at, seen := s.last[t.hash]; seen {
				distance = i - at
			}
			s.last[t.hash] = i
		}
		local := renamable && (i == 0 || code[toks[i-1].at] != '.' || toks[i-1].word) && (i+1 == len(toks) || code[toks[i+1].at] != '(')
		s.distance, s.renamable, s.local = append(s.distance, distance), append(s.renamable, renamable), append(s.local, local)
	}
}

// shapeHash returns the hash of n tokens from first. A name that may change counts as the distance to the previous
// token of the same name.
func (s *scanner) shapeHash(toks []token, first, n int, renamable []bool) (hash uint64) {
	for i := first; i < first+n; i++ {
		x := toks[i].hash
		if renamable[i] {
			if x = 2; s.distance[i] > 0 && s.distance[i] <= i-first {
				x = uint64(s.distance[i]) + 2
			}
		}
		hash = (hash ^ x) * fnvPrime
	}
	return hash
}

// functionHits calls each with the functions in a text, from their parameters on.
func (s *scanner) functionHits(t text, toks []token, each func(hit)) {
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
			builtin = builtin || tok.word && builtinNames[tok.hash]
		}
		if n := last - first; n < minFunctionWords || n < minPlainFunctionWords && !builtin || n > maxFunctionWords {
			continue
		}
		each(hit{wholeFunction, s.shapeHash(toks, first, last-first, s.renamable), first, last - 1})
	}
}
