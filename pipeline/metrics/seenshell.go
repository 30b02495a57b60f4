package metrics

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
)

// shell reads the output of shell commands.
func (r *Reading) shell(row *schemas.StepRow, text string) {
	text = programOutput(text)
	r.windows(text)
	p := parsePrinting(r.Call.Command)
	hasFailed := row.ExitCode != nil && *row.ExitCode != 0
	switch {
	case p.lists:
		r.names(p.dir, text)
	case p.finds:
		r.matches(p.dir, p.file, text)
	case p.file == "" || hasFailed:
	case p.isNumbered:
		r.numbered(path.Join(p.dir, p.file), text)
	case !schemas.Value(row.ObservationTruncated) && !strings.Contains(firstLineOf(text), ": "+p.file+":"):
		n := p.first
		for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
			r.add(path.Join(p.dir, p.file), n, line)
			n++
		}
	}
	if !p.finds && p.file == "" {
		r.tracebacks(text, nil)
	}
}

func firstLineOf(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// programOutput returns the output in an answer of other harnesses, which wrap it.
func programOutput(text string) string {
	for _, tag := range []string{"output", "output_head"} {
		if _, rest, ok := strings.Cut(text, "<"+tag+">"); ok {
			inner, _, _ := strings.Cut(rest, "</"+tag+">")
			return strings.TrimPrefix(inner, "\n")
		}
	}
	for _, end := range []string{"\n[The command completed with exit code", "\n[Current working directory:"} {
		if at := strings.LastIndex(text, end); at >= 0 {
			text = text[:at]
		}
	}
	return text
}

// windows reads the parts of files that open, scroll and edit of SWE-agent show.
func (r *Reading) windows(text string) {
	_, text, ok := strings.Cut(text, "[File: ")
	for ok {
		heading, rest, _ := strings.Cut(text, "\n")
		file, _, found := strings.Cut(heading, " (")
		if found && !strings.HasPrefix(strings.TrimSpace(r.Call.Command), "edit ") {
			for line := range strings.SplitSeq(rest, "\n") {
				if n, source, ok := leadingNumber(line); ok && strings.HasPrefix(source, ":") {
					r.add(file, n, source[1:])
				}
			}
		}
		_, text, ok = strings.Cut(rest, "[File: ")
	}
}

// matches reads the output of grep -n: "path:12:text", or "12:text" if it searched one file.
func (r *Reading) matches(dir, file, text string) {
	for line := range strings.SplitSeq(text, "\n") {
		if n, source, ok := leadingNumber(line); ok && file != "" && source != "" && (source[0] == ':' || source[0] == '-') {
			r.add(path.Join(dir, file), n, source[1:])
			continue
		}
		at := 0
		for at < len(line) { // a name may contain "-" and ":"
			next := strings.IndexAny(line[at:], ":-")
			if next < 0 {
				break
			}
			at += next
			if n, source, ok := leadingNumber(line[at+1:]); ok && source != "" && source[0] == line[at] {
				r.add(path.Join(dir, line[:at]), n, source[1:])
				break
			}
			at++
		}
	}
}

// names reads the output of grep -l: one path per line.
func (r *Reading) names(dir, text string) {
	for name := range strings.FieldsSeq(text) {
		r.Files = append(r.Files, path.Join(dir, name))
	}
}

// printing is a shell command line that prints lines of files.
type printing struct {
	dir        string // of cd before the command
	file       string // "" if the command prints no file, or finds in more than one
	first      int    // number of the first line
	isNumbered bool   // the output has line numbers in the format of cat -n
	finds      bool   // grep with line numbers
	lists      bool   // grep that prints only names of files
}

// parsePrinting reads a command line whose last command prints a file, perhaps after cd and through
// head or sed -n. The result is empty for other command lines.
func parsePrinting(command string) printing {
	var p printing
	pipelines := splitCommands(command)
	for i, stages := range pipelines {
		words := stages[0]
		if words[0] == "cd" && len(words) == 2 && len(stages) == 1 {
			if p.dir = path.Join(p.dir, words[1]); path.IsAbs(words[1]) {
				p.dir = words[1]
			}
			continue
		}
		if i < len(pipelines)-1 || slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, ">") }) {
			return printing{}
		}
		if !p.source(words) || !p.filters(stages[1:]) {
			return printing{}
		}
	}
	return p
}

// source reads the first command of a pipeline.
func (p *printing) source(words []string) bool {
	var flags, operands []string
	for _, w := range words[1:] {
		if len(w) > 1 && w[0] == '-' {
			flags = append(flags, w)
		} else {
			operands = append(operands, w)
		}
	}
	p.first = 1
	switch words[0] {
	case "cat":
		p.isNumbered = slices.Contains(flags, "-n")
	case "nl":
		p.isNumbered = true
		operands = slices.DeleteFunc(operands, func(w string) bool { return w == "a" })
	case "head":
		operands = slices.DeleteFunc(operands, isNumber)
	case "sed":
		if !slices.Contains(flags, "-n") || len(operands) != 2 {
			return false
		}
		if p.first = printRange(operands[0]); p.first == 0 {
			return false
		}
		operands = operands[1:]
	case "grep", "egrep", "rg", "fgrep":
		p.finds = slices.ContainsFunc(flags, isLineNumberFlag)
		isRecursive := slices.ContainsFunc(flags, func(f string) bool { return f[1] != '-' && strings.ContainsAny(f, "rR") })
		operands = slices.DeleteFunc(operands, isNumber) // of -A, -B, -C
		if len(operands) == 2 && !isRecursive && path.Ext(operands[1]) != "" {
			p.file = operands[1]
		}
		p.lists = slices.ContainsFunc(flags, func(f string) bool { return f == "--files-with-matches" || f[1] != '-' && strings.Contains(f, "l") })
		return p.finds || p.lists || isRecursive
	default:
		return false
	}
	if len(operands) != 1 || strings.ContainsAny(operands[0], "*?$`<>") {
		return false
	}
	p.file = operands[0]
	return true
}

// filters reads the commands after the first. They may leave out lines only if the numbers of the
// others stay known.
func (p *printing) filters(stages [][]string) bool {
	for _, words := range stages {
		switch words[0] {
		case "head":
		case "sed":
			first := 0
			if len(words) == 3 && words[1] == "-n" {
				first = printRange(words[2])
			}
			if first == 0 {
				return false
			}
			p.first += first - 1
		case "grep", "tail", "less", "more":
			if words[0] == "grep" && !p.isNumbered && slices.ContainsFunc(words[1:], isLineNumberFlag) {
				p.finds = true
			}
			if !p.isNumbered && !p.finds && !p.lists {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// printRange returns the first line of a script such as 10,20p, or 0 for other scripts.
func printRange(script string) int {
	n, rest, ok := leadingNumber(script)
	if last, hasRange := strings.CutPrefix(rest, ","); hasRange {
		if _, rest, ok = leadingNumber(last); !ok {
			rest, ok = strings.CutPrefix(last, "$")
		}
	}
	if !ok || rest != "p" {
		return 0
	}
	return n
}

// isLineNumberFlag reports whether a word is the option of grep that prints the numbers of lines.
func isLineNumberFlag(word string) bool {
	return word == "--line-number" || len(word) > 1 && word[0] == '-' && word[1] != '-' && strings.Contains(word, "n")
}

func isNumber(word string) bool {
	_, err := strconv.Atoi(word)
	return err == nil
}

// splitCommands splits a shell command line into pipelines, those into commands, and those into
// words without quotes. It leaves out empty commands.
func splitCommands(line string) (pipelines [][][]string) {
	var stages [][]string
	var words []string
	var word strings.Builder
	isWord, quote := false, byte(0)
	endWord := func() {
		if isWord {
			words = append(words, word.String())
		}
		word.Reset()
		isWord = false
	}
	endStage := func() {
		endWord()
		words = slices.DeleteFunc(words, func(w string) bool { return strings.HasPrefix(w, "2>") })
		if len(words) > 0 {
			stages = append(stages, words)
		}
		words = nil
	}
	endPipeline := func() {
		if endStage(); len(stages) > 0 {
			pipelines = append(pipelines, stages)
		}
		stages = nil
	}
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word.WriteByte(c)
		case c == '\'' || c == '"':
			quote, isWord = c, true
		case c == '\\' && i+1 < len(line):
			i++
			word.WriteByte(line[i])
			isWord = true
		case c == ' ' || c == '\t':
			endWord()
		case c == ';' || c == '\n', c == '&' && strings.HasPrefix(line[i:], "&&"), c == '|' && strings.HasPrefix(line[i:], "||"):
			endPipeline()
			if c == '&' || c == '|' {
				i++
			}
		case c == '|':
			endStage()
		default:
			word.WriteByte(c)
			isWord = true
		}
	}
	endPipeline()
	return pipelines
}
