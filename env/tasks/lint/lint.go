// Package lint finds what the text of a task gives away about its fix: the name of a file, function or variable that
// the fix changes, or a line number.
package lint

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
)

// Names are the names that an issue text must not contain unless Output does.
type Names struct {
	Files     []string // paths of the files that the gold patch changes
	Functions []string // qualified names of the functions that it changes
	Words     []string // identifiers on only one side of its changed lines
	Output    string   // output of the failing tests
	Plain     string   // text whose words give nothing away unless they are written as code
	Paths     []string // all files of the repository; if it has only one module, its name gives nothing away
}

// Kinds of findings, for Finding.Kind.
const (
	File       = "file"
	Module     = "module"
	Function   = "function"
	Line       = "line number"
	Identifier = "changed identifier"
)

// LineNumber returns the number in the token of a Line finding, or 0 if there is none.
func LineNumber(token string) int {
	n, _ := strconv.Atoi(strings.TrimLeft(digits.FindString(token), "0")) // the error means 0
	return n
}

// Finding is a name that a text gives away.
type Finding struct{ Kind, Token string }

func (f Finding) String() string { return fmt.Sprintf("%s %q", f.Kind, f.Token) }

var (
	lineNumber = regexp.MustCompile(`(?i)\b(?:on |at |in )?lines? *(?:number|no\.?)? *:? *#?(\d+)\b|\.py:(\d+)\b|\bL(\d+)\b`)
	digits     = regexp.MustCompile(`\d+`)
	identifier = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*`)
)

// Text returns what a text gives away and the failing output does not show: line numbers, and the files, functions and
// identifiers that the gold patch changes.
func Text(text string, s Names) []Finding {
	var found []Finding
	inOutput, inText, plain := wordsOf(s.Output), wordsOf(text), wordsOf(s.Plain)
	ordinary := func(word string) bool { return plainWords[word] || plain[word] }
	only := onlyModule(s.Paths)
	for _, m := range lineNumber.FindAllString(text, -1) {
		if !strings.Contains(s.Output, m) {
			found = append(found, Finding{Line, m})
			break
		}
	}
	for _, file := range s.Files {
		stem := strings.TrimSuffix(path.Base(file), ".py")
		switch {
		case namesPath(text, file) && !namesPath(s.Output, file):
			found = append(found, Finding{File, file})
		case inText[stem] && !inOutput[stem] && strings.Contains(text, path.Base(file)):
			found = append(found, Finding{File, path.Base(file)})
		case file == only || slices.Contains(strings.Split(path.Dir(file), "/"), stem): // the name of the program or package
		case inText[stem] && !inOutput[stem] && !ordinary(stem):
			found = append(found, Finding{Module, stem})
		}
	}
	for _, function := range s.Functions {
		for _, name := range strings.Split(function, ".") {
			if name == "<locals>" || name == "" {
				continue
			}
			if inText[name] && !inOutput[name] && !(ordinary(name) && !occursAsCode(text, name)) {
				found = append(found, Finding{Function, name})
			}
		}
	}
	for _, word := range s.Words {
		if inText[word] && !inOutput[word] && !(ordinary(word) && !occursAsCode(text, word)) {
			found = append(found, Finding{Identifier, word})
		}
	}
	return found
}

// onlyModule returns the path of the repository's module if it has only one, apart from tests, examples and programs
// that build or document it; "" otherwise.
func onlyModule(paths []string) string {
	only := ""
	for _, p := range paths {
		top, _, _ := strings.Cut(p, "/")
		if path.Ext(p) != ".py" || schemas.IsTest(p) || p == "setup.py" || slices.Contains([]string{"docs", "doc", "examples"}, top) {
			continue
		}
		if only != "" {
			return ""
		}
		only = p
	}
	return only
}

// namesPath reports whether a text names a path. A longer file name that ends in the path does not count, such as
// test_bank.py for bank.py.
func namesPath(text, path string) bool {
	found, err := regexp.MatchString(`(?:^|[^\w.-])`+regexp.QuoteMeta(path)+`(?:$|\W)`, text)
	return found && err == nil
}

func wordsOf(text string) map[string]bool {
	out := map[string]bool{}
	for _, w := range identifier.FindAllString(text, -1) {
		out[w] = true
	}
	return out
}

// plainWords are common English words and common names in Python programs. They give nothing away.
var plainWords = func() map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(`a add all an and any append are as ask be but by call cause check checks command copy count data do does end ends
		error errors expected fail fails find first for format from get given go happens has have i if in index is it its item
		key last len length line list main max mend min more name new next no not nothing number of on one open or order other out
		parse pass print program raise read report result return run running same self set should size sort start state step
		stop string sum test tests text than that the then this time to total two type update use user value values was what when where which with word wrong write`) {
		out[w] = true
	}
	return out
}()

// occursAsCode reports whether a word occurs in the text as code: in backquotes, in an indented line, called, or after
// a dot.
func occursAsCode(text, word string) bool {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "    ") && wordsOf(line)[word] {
			return true
		}
	}
	asCode := regexp.MustCompile("`[^`\n]*\\b" + regexp.QuoteMeta(word) + "\\b[^`\n]*`|\\b" + regexp.QuoteMeta(word) + `\(|\.` + regexp.QuoteMeta(word) + `\b`)
	return asCode.MatchString(text)
}

// ChangedWords returns the identifiers on only one side of a patch's changed lines.
func ChangedWords(patch []byte) []string {
	removed, added := map[string]int{}, map[string]int{}
	for line := range strings.Lines(string(patch)) {
		side := removed
		switch {
		case strings.HasPrefix(line, "---"), strings.HasPrefix(line, "+++"):
			continue
		case strings.HasPrefix(line, "+"):
			side = added
		case !strings.HasPrefix(line, "-"):
			continue
		}
		for _, w := range identifier.FindAllString(line, -1) {
			side[w]++
		}
	}
	var out []string
	for _, pair := range [][2]map[string]int{{removed, added}, {added, removed}} {
		for _, w := range slices.Sorted(maps.Keys(pair[0])) {
			if pair[1][w] == 0 && !keywords[w] {
				out = append(out, w)
			}
		}
	}
	return out
}

// keywords are the keywords of Python, which give nothing away.
var keywords = func() map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(`False None True and as assert async await break class continue def del elif else except finally for from
		global if import in is lambda nonlocal not or pass raise return try while with yield`) {
		out[w] = true
	}
	return out
}()
