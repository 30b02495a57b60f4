package closure

import (
	"slices"
	"strconv"
	"strings"
)

// This file decides which numbers, lines, paths and words a text may use.

// value reports a number that was not shown.
func (c *checker) value(value, shown string) {
	if c.isScript {
		c.bindName(value)
	}
	if len(value) == 1 || c.bound[value] || c.wasShown(value) {
		return
	}
	if parts := strings.Split(shown, ","); len(parts) > 1 {
		all := true
		for _, p := range parts {
			v, _ := numberAt(p)
			all = all && (len(v) == 1 || c.wasShown(v))
		}
		if all {
			return
		}
	}
	if c.isDerived(value) {
		c.bindName(value)
		return
	}
	c.report(Value, shown)
}

// line reports a line that is not within the distance of a displayed one.
func (c *checker) line(file string, n, distance int) {
	if source, _, isCopy := strings.Cut(file, ".py."); isCopy {
		file = source + ".py"
	}
	if c.bound[file] || slices.Contains(c.viewed, n) {
		return
	}
	if isNumber := (file == "" || n >= 100) && c.wasShown(strconv.Itoa(n)); n > 1 && !isNumber && !c.hasLine(file, n, distance) {
		c.report(Line, lineText(file, n))
	}
}

// view reports the first line of a view that has no displayed line and does not begin near one.
func (c *checker) view(file string, first, last int) {
	if !c.hasLineIn(file, first, min(last, first+maxView)) {
		c.line(file, first, nearLines)
	}
}

// hasLineIn reports whether one of the lines from first to last was displayed.
func (k *known) hasLineIn(file string, first, last int) bool {
	for n := first; n <= last; n++ {
		if k.hasLine(file, n, 0) {
			return true
		}
	}
	return false
}

// maxView limits the lines of a view that may have a displayed line among them.
const maxView = 100

// nearLines is how far the start of a view may be from a displayed line: a listing shows where the next
// lines are. Other lines must have been displayed.
const nearLines = 3

// path reports a path that was not shown.
func (c *checker) path(p string, m mode) {
	p = c.relative(p)
	if source, _, isCopy := strings.Cut(p, ".py."); isCopy { // such as cart.py.backup
		p = source + ".py"
	}
	if p == "" || c.hasPath(p) || c.bound[p] || isOutside(p) || p == "N/A" || strings.HasSuffix(p, ".pyc") || strings.HasSuffix(p, ".pyo") {
		return
	}
	if m == code && strings.IndexByte(p, '/') < 0 && !strings.HasSuffix(p, ".py") { // an attribute such as x.json
		c.wordRun(p, "", false, m)
		return
	}
	if strings.IndexByte(p, '/') > 0 && (classes[p[0]] == digit || strings.IndexByte(baseName(p), '.') < 0 && (m == code || m == prose || c.isScript)) { // a division, or alternatives
		for part := range strings.SplitSeq(p, "/") {
			if part != "" && classes[part[0]]&letter != 0 {
				c.wordRun(part, "", false, m)
			}
		}
		return
	}
	if isTestName(baseName(p)) {
		c.report(Test, p)
		return
	}
	c.report(File, p)
}

// relative removes the workspace from a path.
func (c *checker) relative(p string) string {
	for _, dir := range []string{"testbed/", "workspace/", "app/", "repo/"} {
		if rest, ok := strings.CutPrefix(p, dir); ok {
			return rest
		}
	}
	return strings.TrimSuffix(p, "/")
}

// isOutside reports whether a path is outside of the workspace.
func isOutside(p string) bool {
	first, _, _ := strings.Cut(p, "/")
	switch first {
	case "tmp", "dev", "usr", "etc", "proc", "home", "root", "opt", "var", "bin", "http:", "https:":
		return true
	}
	return false
}

// isPhrase reports whether a run with slashes is a phrase such as and/or.
func isPhrase(p string) bool {
	if strings.IndexByte(baseName(p), '.') >= 0 {
		return false
	}
	for part := range strings.SplitSeq(p, "/") {
		if !isCommon(part) {
			return false
		}
	}
	return true
}

func isTestName(name string) bool {
	return strings.HasPrefix(name, "test_") || strings.HasPrefix(name, "Test") && len(name) > 4 || strings.HasSuffix(strings.TrimSuffix(name, ".py"), "_test")
}

// wordRun checks the words of a run. rest is the text after it. isInside means that a capital letter does not begin a
// sentence.
func (c *checker) wordRun(run, rest string, isInside bool, m mode) {
	isDotted := false
	for i := 0; i < len(run)-1; i++ {
		if run[i] == '.' && classes[run[i+1]] == letter {
			isDotted = true
		}
	}
	root := ""
	for i := 0; i < len(run); {
		if classes[run[i]]&(letter|digit) == 0 {
			i++
			continue
		}
		start := i
		for i < len(run) && classes[run[i]]&(letter|digit) != 0 {
			i++
		}
		word := run[start:i]
		if start == 0 {
			root = word
		}
		if classes[word[0]] == digit {
			value, n := numberAt(word)
			if n == len(word) && m != prose {
				c.value(value, word)
			}
			continue
		}
		if isDotted && standard[root] && start > 0 {
			continue
		}
		isCalled := i == len(run) && strings.HasPrefix(rest, "(")
		if isInside && 'A' <= word[0] && word[0] <= 'Z' && c.names[word] && !c.hasWord(word) && !prior[word] && len(word) > 1 {
			c.report(Identifier, word)
			continue
		}
		c.word(word, m, isDotted && !isSentenceEnd(run), isCalled)
	}
}

// isSentenceEnd reports whether a dotted run is the end of one sentence and the start of the next.
func isSentenceEnd(run string) bool {
	left, right, _ := strings.Cut(run, ".")
	return !prior[left] && isCommon(left) && isCommon(right) && len(right) > 0 && 'A' <= right[0] && right[0] <= 'Z' || run == "e.g" || run == "i.e" || run == "a.k.a"
}

// word checks one word.
func (c *checker) word(w string, m mode, isDotted, isCalled bool) {
	if len(w) < 2 && m != code || !isASCII(w) || c.hasWord(w) || prior[w] || c.bound[w] || !c.names[w] && isPublic(w) {
		return
	}
	if len(w) < 2 && c.names == nil {
		return
	}
	looksLikeCode := isDotted || isCalled || hasCodeShape(w)
	switch m {
	case prose:
		if !looksLikeCode && !(c.names[w] && (!isCommon(w) || isUpper(w))) {
			return
		}
		if isCalled && !c.names[w] && isCommon(w) { // "name(s)", "a method (which"
			return
		}
	case words:
		if !looksLikeCode && !c.names[w] && (c.names != nil || isCommon(w)) {
			return
		}
	case pattern:
		if len(w) < 3 {
			return
		}
	}
	if c.occurs(w, m == words || m == pattern) {
		return
	}
	if m == prose && !isDotted && !isCalled { // the start of a sentence, or a plural
		lower := strings.ToLower(w)
		if lower != w && !hasCodeShape(w) && (c.hasWord(lower) || prior[lower]) || strings.HasSuffix(w, "s") && c.hasWord(w[:len(w)-1]) {
			return
		}
	}
	kind := Identifier
	if isTestName(w) {
		kind = Test
	}
	c.report(kind, w)
}

// isASCII reports whether a word has no other letters. Others are symbols in formulas and marks such as ✓.
func isASCII(w string) bool {
	return !strings.ContainsFunc(w, func(r rune) bool { return r >= 0x80 })
}

func isUpper(w string) bool { return len(w) > 1 && strings.ToUpper(w) == w }
