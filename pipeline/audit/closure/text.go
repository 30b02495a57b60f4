package closure

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// This file finds the entities in texts: prose, Python code, shell commands and patterns.

// prose checks a message. Text in backquotes is code.
func (c *checker) prose(text string) {
	for text != "" {
		before, rest, found := strings.Cut(text, "`")
		c.text(before, prose)
		if !found {
			return
		}
		fence, language := "`", ""
		if strings.HasPrefix(rest, "``") {
			fence, rest = "```", rest[2:]
			if first, after, ok := strings.Cut(rest, "\n"); ok {
				language, rest = first, after
			}
		}
		var inside string
		inside, text, _ = strings.Cut(rest, fence)
		first, _, hasMore := strings.Cut(inside, " ")
		if language == "bash" || language == "sh" || hasMore && commands[first] {
			c.shell(inside)
			continue
		}
		if strings.Contains(inside, "\n") {
			c.program(script{inside, true, true})
			continue
		}
		c.quoted(inside)
	}
}

// commands are those that begin a shell command in backquotes.
var commands = map[string]bool{
	"bash": true, "cat": true, "cd": true, "find": true, "git": true, "grep": true, "head": true, "ls": true, "pip": true, "pytest": true, "python": true,
	"python3": true, "rg": true, "sed": true, "tail": true,
}

// quoted checks text in backquotes. Several words without code are a phrase.
func (c *checker) quoted(text string) {
	before := len(c.out)
	c.bind(text)
	c.text(text, code)
	if len(c.out) > before && c.containsText(text) { // words that are no words elsewhere, but numbers stay
		c.out = c.out[:before]
		c.checkNumbers(text)
	}
}

func (c *checker) checkNumbers(text string) {
	for i := 0; i < len(text); i++ {
		if classes[text[i]] == digit && (i == 0 || classes[text[i-1]]&(letter|digit) == 0) {
			value, n := numberAt(text[i:])
			c.value(value, text[i:i+n])
			i += n
		}
	}
}

// code checks Python code, in which comments and strings with spaces are prose.
func (c *checker) code(text string) {
	c.bind(text)
	for strings.Contains(text, "+") {
		m := joined.FindStringSubmatchIndex(text)
		if m == nil {
			break
		}
		text = text[:m[2]] + text[m[3]:]
	}
	var quote byte
	start := 0
	flush := func(end int, m mode) {
		if end > start {
			c.text(text[start:end], m)
		}
		start = end
	}
	for i := 0; i < len(text); i++ {
		switch b := text[i]; {
		case quote != 0 && b == '\\':
			i++
		case quote != 0 && b == quote:
			c.literal(text[start:i])
			start, quote = i+1, 0
		case quote != 0:
		case b == '#':
			flush(i, code)
			for i < len(text) && text[i] != '\n' {
				i++
			}
			flush(i, prose)
		case b == '\'' || b == '"':
			flush(i-len(prefix.FindString(text[start:i])), code)
			quote, start = b, i+1
		}
	}
	if quote != 0 {
		c.literal(text[start:])
		return
	}
	flush(len(text), code)
}

// prefix matches the letters before a string.
var prefix = regexp.MustCompile(`(?i)\b(?:f|r|b|u|br|rb|fr|rf)$`)

// joined matches the end of a string and the start of the next one, which Python adds to it.
var joined = regexp.MustCompile(`[^\s'"](['"]\s*\+\s*['"])[^\s'"]`)

// literal checks the content of a string in code.
func (c *checker) literal(text string) {
	before, text := len(c.out), withoutEscapes(text)
	if strings.ContainsAny(text, " {\\%") {
		c.text(text, prose)
	} else if c.text(text, words); len(c.out) == before && isWordText(text) && !c.hasWord(text) && len(text) > 1 && !prior[text] {
		c.report(Value, text)
	}
	if len(c.out) > before && c.containsText(text) {
		c.out = c.out[:before]
	}
}

// isKnownName reports whether the parts of a dotted name were shown, or the step's own code binds them.
func (c *checker) isKnownName(text string) bool {
	for part := range strings.SplitSeq(text, ".") {
		if !c.hasWord(part) && !c.bound[part] {
			return false
		}
	}
	return true
}

// text checks the words, numbers and paths of a text.
func (c *checker) text(text string, m mode) {
	afterLine, afterOption := false, false
	file := c.file // that a line number belongs to
	for i := 0; i < len(text); {
		if classes[text[i]] == 0 {
			i++
			continue
		}
		start := i
		for i < len(text) && classes[text[i]] != 0 {
			i++
		}
		run := text[start:i]
		if m == prose && classes[run[0]] == letter {
			if length := c.numberWords(text[start:], afterLine, file); length > 0 {
				i = max(i, start+length)
				continue
			}
		}
		if m == words && run[0] == '-' { // an option, perhaps with a number
			afterOption = true
			continue
		}
		if end := foreignEnd(text, start, i); end > 0 {
			i = end
			continue
		}
		if p := cleanPath(run); strings.IndexAny(p, "./") > 0 && isPath(p) && !(m == prose && isPhrase(p)) {
			c.path(p, m)
			if n, end := lineAfter(text[i:]); n > 0 {
				c.line(baseName(p), n, 0)
				i += end
			}
			if rest := text[i:]; strings.HasPrefix(rest, " at line ") || strings.HasPrefix(rest, ", at line ") || strings.HasPrefix(rest, " line ") || m != prose {
				file = baseName(p)
			}
			continue
		}
		first := run
		if classes[run[0]] == mark {
			first = strings.TrimLeft(run, "./-")
		}
		if first == "" {
			continue
		}
		if classes[first[0]] == digit {
			start += len(run) - len(first)
			_, n := numberAt(text[start:])
			if isEnd := start+n == len(text) || text[start+n] <= ' '; m == words && (afterOption && isEnd || isScript(text[start+n:])) {
				i, afterOption = start+n, false
				if !isEnd {
					c.script(text[start:], text[:start])
					for i < len(text) && (text[i] == ',' || classes[text[i]]&(letter|digit) != 0) {
						i++
					}
				}
				continue
			}
			end := c.numberRun(text, start, m, afterLine, file)
			i = max(start+end, start+1)
			afterLine = afterLine && i < len(text) && followsLine(text[i:])
			continue
		}
		afterOption = false
		switch run {
		case "and", "to", "or", "through":
		default:
			afterLine = isLineWord(run)
		}
		if m != prose && (strings.HasSuffix(text[:start], "import ") || strings.HasSuffix(text[:start], "from ")) && strings.IndexByte(first, '.') > 0 && !strings.HasPrefix(text[i:], "(") {
			c.module(first)
			continue
		}
		c.wordRun(first, text[i:], m == prose && isInside(text[:start]), m)
	}
}

// numberWords checks a number in words, and returns its length, or 0 if there is none.
func (c *checker) numberWords(text string, afterLine bool, file string) int {
	n, length := numberWord(text)
	switch {
	case length == 0:
	case afterLine:
		if named := c.fileAfter(text[length:]); named != "" {
			file = named
		}
		c.line(file, n, 0)
	case n > 10: // "ten" is often a manner of speaking
		c.value(strconv.Itoa(n), text[:length])
	}
	return length
}

// module checks the name of an imported module.
func (c *checker) module(name string) {
	root, _, _ := strings.Cut(name, ".")
	if p := strings.ReplaceAll(name, ".", "/"); !standard[root] && !c.hasPath(p+".py") && !c.tokens.has(hash(pathSeed, p)) {
		c.report(File, p+".py")
	}
}

// foreignEnd returns the end of a variable of the shell or of a URL, which no closure can know, or 0 if the run from
// start to end is neither.
func foreignEnd(text string, start, end int) int {
	switch {
	case start > 0 && text[start-1] == '$':
		return end
	case start > 0 && text[start-1] == ':' && strings.HasPrefix(text[start:], "//"):
		for end < len(text) && strings.IndexByte(" \n\"'`<>)", text[end]) < 0 {
			end++
		}
		return end
	}
	return 0
}

// isInside reports whether a word after a text is inside of a sentence, where English words have no capitals.
func isInside(before string) bool {
	before = strings.TrimRight(before, " ")
	return before != "" && (before[len(before)-1] == ',' || classes[before[len(before)-1]] == letter)
}

// isScript reports whether the number before a text is a line in a script of sed: 3,9p, 3p, 3d or 3s/a/b/.
func isScript(rest string) bool {
	rest = strings.TrimPrefix(rest, ",")
	for rest != "" && (classes[rest[0]] == digit || rest[0] == ',') {
		rest = rest[1:]
	}
	return len(rest) > 0 && strings.IndexByte("pdsaic", rest[0]) >= 0 && (len(rest) == 1 || classes[rest[1]]&(letter|digit) == 0)
}

// minPage is the least number of lines of a page: a range that begins with a round number, because the agent looks around
// in a file.
const minPage = 20

// script checks the line that a script of sed names. It checks the first line of a range unless the range is a page or
// contains a line that the agent has seen. The command may name the file before the script, as in cat FILE | sed.
func (c *checker) script(text, before string) {
	file, first := commandFile(text), atoi(text)
	if file == "" {
		file = commandFile(before)
	}
	if _, last, ok := strings.Cut(text[:min(len(text), 14)], ","); ok && classes[(last + " ")[0]] == digit {
		end := atoi(last)
		if first%10 != 0 || end-first < minPage {
			c.view(file, first, end)
		}
		c.viewed = append(c.viewed, first, end) // the agent may say what it views
		return
	}
	c.line(file, first, 0)
}

// commandFile returns the last element of the last path in a command.
func commandFile(text string) string {
	fields := strings.Fields(text)
	for _, f := range slices.Backward(fields) {
		if p := cleanPath(strings.Trim(f, `'"`)); isPath(p) {
			return baseName(p)
		}
	}
	return ""
}

// followsLine reports whether a text continues a list of line numbers: "lines 3, 4 and 5".
func followsLine(rest string) bool {
	for _, s := range []string{", ", " and ", " to ", " or ", "-", "–"} {
		if strings.HasPrefix(rest, s) {
			return true
		}
	}
	return false
}

// fileAfter returns the last element of the path after a line number: "of the store", "in shop/cart.py".
func (c *checker) fileAfter(rest string) string {
	for _, before := range []string{" of ", " in "} {
		name, ok := strings.CutPrefix(rest, before)
		if !ok {
			continue
		}
		name, _, _ = strings.Cut(strings.TrimLeft(strings.TrimPrefix(name, "the "), "`"), " ")
		name = cleanPath(strings.Trim(name, "`,.;:)"))
		switch {
		case isPath(name):
			return baseName(name)
		case c.tokens.has(hash(pathSeed, name+".py")):
			return name + ".py"
		}
	}
	return ""
}

func isLineWord(w string) bool {
	switch w {
	case "line", "lines", "Line", "Lines", "lineno", "L":
		return true
	}
	return false
}

// numberRun checks the number at start, and returns its length with what belongs to it.
func (c *checker) numberRun(text string, start int, m mode, afterLine bool, file string) int {
	value, n := numberAt(text[start:])
	shown := text[start : start+n]
	end := n
	for start+end < len(text) && classes[text[start+end]] == letter {
		end++
	}
	suffix := text[start+n : start+end]
	switch {
	case afterLine:
		line := 0
		for _, d := range value {
			if d < '0' || d > '9' {
				break
			}
			line = 10*line + int(d-'0')
			if line > maxLine {
				break
			}
		}
		if named := c.fileAfter(text[start+n:]); named != "" {
			file = named
		}
		c.line(file, line, 0)
		return n
	case suffix == "" || suffix[0] >= 0x80 || suffix == "s" || suffix == "x" || suffix == "ms" || suffix == "k" || suffix == "K" || suffix == "j":
		c.value(value, shown)
	case suffix == "st" || suffix == "nd" || suffix == "rd" || suffix == "th": // assertions about iterations are checked elsewhere
		c.value(value, shown)
	default:
		for start+end < len(text) && classes[text[start+end]]&(letter|digit) != 0 {
			end++
		}
		if run := text[start : start+end]; !c.hasWord(suffix) && !c.containsText(run) && len(run) > 3 {
			c.report(Value, run)
		}
		return end
	}
	return end
}
