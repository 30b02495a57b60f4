package closure

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/tracesmith/tracesmith/agents/shown"
)

// This file collects what the texts of an episode have shown. It hashes each token instead of
// storing it, because most of the time goes into reading long observations.

// known is what an episode has shown up to a step.
type known struct {
	tokens  set                 // words, numbers and paths, see the seeds below
	lines   map[string]*lineSet // numbers of displayed lines, by the last element of the file's path
	texts   []string            // all texts, for rare searches
	lower   []string            // those of them that a search has needed in lower case
	targets targets

	lastFile string // of last, which saves a look-up for most lines
	last     *lineSet
}

// clone copies what descriptions of tools show. They contain no places.
func (k *known) clone() known {
	return known{
		tokens: set{slices.Clone(k.tokens.slots), slices.Clone(k.tokens.last), k.tokens.n, k.tokens.now},
		lines:  map[string]*lineSet{}, texts: slices.Clone(k.texts), targets: newTargets(),
	}
}

// lineSet holds numbers of lines as bits.
type lineSet []uint64

func (l lineSet) has(n int) bool { return n > 0 && n>>6 < len(l) && l[n>>6]>>(n&63)&1 == 1 }

func (k *known) addLine(file string, n int) {
	if n <= 0 || n >= maxLine {
		return
	}
	if file != k.lastFile || k.last == nil {
		if k.lines[file] == nil {
			k.lines[file] = &lineSet{}
		}
		k.lastFile, k.last = file, k.lines[file]
	}
	for n>>6 >= len(*k.last) {
		*k.last = append(*k.last, 0)
	}
	(*k.last)[n>>6] |= 1 << (n & 63)
}

// learn reads a text. file is the file that the text is about, if that is known. isShown is false for
// descriptions of tools.
func (k *known) learn(text, file string, isShown bool) {
	k.texts = append(k.texts, text)
	k.tokens.now = int32(len(k.texts))
	file = path.Base(file)
	for line := range strings.SplitSeq(text, "\n") {
		if n, rest, ok := numberedLine(line); ok && file != "." {
			k.addLine(file, n)
			k.targets.define(file, n, rest)
			k.scan(rest, file, isShown)
			continue
		}
		if found := k.scan(line, file, isShown); found != "" {
			file = path.Base(found)
		}
	}
}

// repeatable reads a text of the agent. Later steps may repeat its words and numbers, because what it could not know
// counts in the first step that says it.
func (k *known) repeatable(text string) {
	for i := 0; i < len(text); {
		if classes[text[i]] == 0 {
			i++
			continue
		}
		i, _, _ = k.run(text, i, false)
	}
}

// repeatableArgument lets later steps repeat the texts of an argument.
func (k *known) repeatableArgument(value any) {
	switch v := value.(type) {
	case map[string]any:
		for _, element := range v {
			k.repeatableArgument(element)
		}
	case []any:
		for _, element := range v {
			k.repeatableArgument(element)
		}
	case string:
		k.repeatable(v)
	}
}

// numberedLine reads a line of a listing in the formats of view, grep, pdb and cat -n.
func numberedLine(line string) (n int, text string, ok bool) {
	if line == "" || line[0] != ' ' && line[0] != 'B' && classes[line[0]] != digit {
		return 0, "", false
	}
	if n, text, ok = shown.ViewLine(line); ok {
		return n, text, ok
	}
	if n, text, ok = shown.GrepLine(line); ok {
		return n, text, ok
	}
	if n, text, ok = shown.PDBLine(line); ok {
		return n, text, ok
	}
	digits, rest, found := strings.Cut(line, ":") // grep -n with one file
	n, err := strconv.Atoi(digits)
	return n, rest, found && err == nil
}

// scan reads the words, numbers and paths of a line. It returns the last path.
func (k *known) scan(line, file string, isShown bool) (last string) {
	if text := strings.TrimLeft(line, " "); strings.HasPrefix(text, "from ") || strings.HasPrefix(text, "import ") {
		k.imports(text)
	}
	afterLine := false // the word before is "line" or "lines", so a number is that of a line
	for i := 0; i < len(line); {
		start := i
		switch classes[line[i]] {
		case 0:
			i++
			continue
		case digit:
			if afterLine && file != "" && file != "." {
				i += k.lineNumbers(line[i:], file)
			} else {
				i += k.number(line[i:], isShown)
			}
			afterLine = false
			continue
		}
		hasSlash, dot := false, 0
		i, hasSlash, dot = k.run(line, i, isShown)
		run := line[start:i]
		if !hasSlash && dot == 0 {
			afterLine = run == "line" || run == "lines"
			if run[0] == 'L' && len(run) > 1 && start > 0 && line[start-1] == '#' { // a link to lines: file.py#L12-L14
				k.lineNumbers(run[1:], file)
				k.number(run[1:], isShown)
			}
			continue
		}
		afterLine = false
		if p := cleanPath(run); isPath(p) {
			k.addPath(p)
			last, file = p, path.Base(p)
			k.targets.file(file)
			if n, end := lineAfter(line[i:]); n > 0 {
				k.addLine(file, n)
				k.trace(line)
				i += end
				continue
			}
			if rest := line[i:]; strings.HasPrefix(rest, ":from ") || strings.HasPrefix(rest, ":import ") { // found by grep
				k.imports(rest[1:])
			}
		}
		if start > 0 && (line[start-1] == '<' || line[start-1] == '\'') { // <package.module.Class object at 0x1>
			k.imports(run)
		}
	}
	return last
}

// trace remembers the words of a line that names a place.
func (k *known) trace(line string) {
	for i := 0; i < len(line); i++ {
		if classes[line[i]] != letter {
			continue
		}
		h := uint64(traceSeed)
		for ; i < len(line) && classes[line[i]]&(letter|digit) != 0; i++ {
			h = (h ^ uint64(line[i])) * prime
		}
		k.tokens.add(h)
	}
}

// imports adds the files of the modules that a line imports.
func (k *known) imports(line string) {
	for w := range strings.FieldsFuncSeq(line, func(r rune) bool { return r == '.' || r == ' ' || r == ',' || r == '(' || r == ')' }) {
		k.tokens.add(hash(pathSeed, w+".py"))
	}
}

// run adds the words and numbers of the run of letters, digits and marks at start. It returns the end, whether there is
// a slash, and the index of the last dot, or 0.
func (k *known) run(line string, start int, isShown bool) (i int, hasSlash bool, dot int) {
	for i = start; i < len(line); {
		switch classes[line[i]] {
		case 0:
			return i, hasSlash, dot
		case letter:
			h := uint64(wordSeed)
			for i < len(line) && classes[line[i]]&(letter|digit) != 0 {
				h = (h ^ uint64(line[i])) * prime
				i++
			}
			k.tokens.add(h)
		case digit:
			i += k.number(line[i:], isShown)
		default:
			hasSlash = hasSlash || line[i] == '/'
			if line[i] == '.' {
				dot = i
			}
			i++
		}
	}
	return i, hasSlash, dot
}

// lineNumbers adds the numbers of lines at the start of a text: 3 or 3-9.
func (k *known) lineNumbers(text, file string) (end int) {
	for end < len(text) && (classes[text[end]] == digit || text[end] == '-') {
		end++
	}
	for part := range strings.SplitSeq(text[:end], "-") {
		if n, err := strconv.Atoi(part); err == nil {
			k.addLine(file, n)
		}
	}
	return end
}

// number adds the number at the start of a text, and returns its length. It adds "2,450.00" as a whole
// and in parts.
func (k *known) number(text string, isShown bool) int {
	value, length := numberAt(text)
	k.addNumber(value, isShown)
	if strings.IndexByte(text[:length], ',') >= 0 {
		for part := range strings.SplitSeq(text[:length], ",") {
			value, _ := numberAt(part)
			k.addNumber(value, isShown)
		}
	}
	return length
}

func (k *known) addNumber(value string, isShown bool) {
	k.tokens.add(hash(numberSeed, value))
	if isShown {
		k.tokens.add(hash(shownSeed, value))
	}
}

// lineAfter reads the line number after a path: ":12", "(12)" or "\", line 12". It returns the length of
// what it read.
func lineAfter(text string) (n, length int) {
	if text == "" || text[0] != ':' && text[0] != '(' && text[0] != '"' && text[0] != ',' {
		return 0, 0
	}
	for _, before := range []string{":", "(", `", line `, ", line "} {
		if rest, ok := strings.CutPrefix(text, before); ok {
			end := 0
			for end < len(rest) && classes[rest[end]] == digit {
				end++
			}
			n, _ = strconv.Atoi(rest[:end]) // an overflow is no line
			return n, len(before) + end
		}
	}
	return 0, 0
}

// addPath adds a path with its suffixes and the directories above it.
func (k *known) addPath(p string) {
	for {
		k.tokens.add(hash(pathSeed, p))
		for i := len(p) - 1; i > 0; i-- {
			if p[i] == '/' {
				k.tokens.add(hash(pathSeed, p[:i]))
			}
		}
		_, rest, ok := strings.Cut(p, "/")
		if !ok || rest == "" {
			return
		}
		p = rest
	}
}

func (k *known) hasWord(w string) bool  { return k.tokens.has(hash(wordSeed, w)) }
func (k *known) wasShown(v string) bool { return k.tokens.has(hash(shownSeed, v)) }

// hasPath reports whether a path was shown, or can be composed of directories and names that were.
func (k *known) hasPath(p string) bool {
	if k.tokens.has(hash(pathSeed, p)) {
		return true
	}
	parts := strings.Split(p, "/")
	for i, part := range parts {
		switch {
		case part == "" || part == "." || part == ".." || part == "*":
		case publicFiles[part], k.tokens.has(hash(pathSeed, part)):
		case i < len(parts)-1 && k.hasWord(part): // a directory
		case strings.HasSuffix(part, ".py") && hasCodeShape(part[:len(part)-3]) && k.hasWord(part[:len(part)-3]): // a module
		case !strings.Contains(part, ".") && k.hasWord(part):
		default:
			return false
		}
	}
	return true
}

// hasLine reports whether a line of a file was displayed, or one within the given distance of it. file may be
// "": any file.
func (k *known) hasLine(file string, n, distance int) bool {
	near := func(l *lineSet) bool {
		for d := -distance; d <= distance; d++ {
			if l != nil && l.has(n+d) {
				return true
			}
		}
		return false
	}
	if file != "" && file != "." {
		return near(k.lines[file])
	}
	for _, l := range k.lines {
		if near(l) {
			return true
		}
	}
	return false
}

// containsText reports whether a text occurs in what was shown. It is slow, and for rare cases.
func (k *known) containsText(text string) bool {
	for _, t := range k.texts {
		if strings.Contains(t, text) {
			return true
		}
	}
	return false
}

// occurs reports whether a word was shown as a part of another one, such as L016 in test_L016_combo, or in lower case. If
// isPattern, any part counts. It is slow, like containsText.
func (k *known) occurs(w string, isPattern bool) bool {
	if isPattern = isPattern && len(w) > 2; containsWord(k.texts, w, isPattern) {
		return true
	}
	if w != strings.ToLower(w) {
		return false
	}
	for _, t := range k.texts[len(k.lower):] {
		k.lower = append(k.lower, strings.ToLower(t))
	}
	return containsWord(k.lower, w, isPattern)
}

// containsWord reports whether a word occurs in one of the texts between marks or underscores, or anywhere if isPattern.
func containsWord(texts []string, w string, isPattern bool) bool {
	isEdge := func(b byte) bool { return b == '_' || classes[b]&(letter|digit) == 0 }
	for _, t := range texts {
		for from := 0; ; {
			at := strings.Index(t[from:], w)
			if at < 0 {
				break
			}
			start, end := from+at, from+at+len(w)
			if isPattern || (start == 0 || isEdge(t[start-1])) && (end == len(t) || isEdge(t[end])) {
				return true
			}
			from = end
		}
	}
	return false
}
