// Package lint finds what the text of a task gives away of its bug: a file, a line, a function or a
// name that the fix changes.
package lint

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Names are what an issue text must not contain unless the failing output does.
type Names struct {
	Files     []string // paths of the gold patch
	Functions []string // qualified names that it changes
	Words     []string // identifiers on only one side of its changed lines
	Output    string   // output of the failing tests
	Plain     string   // a text whose words give nothing away unless they are written as code
}

// What a finding is.
const (
	File       = "file"
	Module     = "module"
	Function   = "function"
	Line       = "line number"
	Identifier = "changed identifier"
)

// Number returns the line that a finding of a line number names.
func Number(token string) int {
	n, _ := strconv.Atoi(strings.TrimLeft(digits.FindString(token), "0")) // 0 is no line
	return n
}

// Finding is a name that a text gives away.
type Finding struct{ What, Token string }

func (f Finding) String() string { return fmt.Sprintf("%s %q", f.What, f.Token) }

var (
	lineNumber = regexp.MustCompile(`(?i)\b(?:on |at |in )?lines? *(?:number|no\.?)? *:? *#?(\d+)\b|\.py:(\d+)\b|\bL(\d+)\b`)
	digits     = regexp.MustCompile(`\d+`)
	identifier = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*`)
)

// Text returns what a text gives away: a file or function of the gold patch that the
// failing output does not name, an identifier that the patch changes, or a line number.
func Text(text string, s Names) []Finding {
	var found []Finding
	shown, told, plain := wordsOf(s.Output), wordsOf(text), wordsOf(s.Plain)
	ordinary := func(word string) bool { return plainWords[word] || plain[word] }
	if m := lineNumber.FindString(text); m != "" {
		found = append(found, Finding{Line, m})
	}
	for _, file := range s.Files {
		stem := strings.TrimSuffix(path.Base(file), ".py")
		switch {
		case strings.Contains(text, file) && !strings.Contains(s.Output, file):
			found = append(found, Finding{File, file})
		case told[stem] && !shown[stem] && strings.Contains(text, path.Base(file)):
			found = append(found, Finding{File, path.Base(file)})
		case told[stem] && !shown[stem] && !ordinary(stem):
			found = append(found, Finding{Module, stem})
		}
	}
	for _, function := range s.Functions {
		for _, name := range strings.Split(function, ".") {
			if name == "<locals>" || name == "" {
				continue
			}
			if told[name] && !shown[name] && !(ordinary(name) && !codelike(text, name)) {
				found = append(found, Finding{Function, name})
			}
		}
	}
	for _, word := range s.Words {
		if told[word] && !shown[word] && !(ordinary(word) && !codelike(text, word)) {
			found = append(found, Finding{Identifier, word})
		}
	}
	return found
}

func wordsOf(text string) map[string]bool {
	out := map[string]bool{}
	for _, w := range identifier.FindAllString(text, -1) {
		out[w] = true
	}
	return out
}

// plainWords are common English words and common names in Python programs, whose presence gives
// nothing away.
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

// codelike reports whether a word occurs in the text as code: in backquotes, in an
// indented line, called, or after a dot.
func codelike(text, word string) bool {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "    ") && wordsOf(line)[word] {
			return true
		}
	}
	quoted := regexp.MustCompile("`[^`\n]*\\b" + regexp.QuoteMeta(word) + "\\b[^`\n]*`|\\b" + regexp.QuoteMeta(word) + `\(|\.` + regexp.QuoteMeta(word) + `\b`)
	return quoted.MatchString(text)
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

// keywords are words of Python that are in many texts about programs.
var keywords = func() map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(`False None True and as assert async await break class continue def del elif else except finally for from
		global if import in is lambda nonlocal not or pass raise return try while with yield`) {
		out[w] = true
	}
	return out
}()
