package check

import (
	"context"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/env/tasks/leak"
)

// secrets are the lines, words and texts that only the fixed version of a repository has.
type secrets struct {
	Lines    []string              `json:"lines"`    // whole added lines, without indentation
	Words    []string              `json:"words"`    // identifiers
	Texts    []string              `json:"texts"`    // contents of string literals
	Visible  []string              `json:"visible"`  // paths of the files that agents may read
	Files    map[string][2]*string `json:"files"`    // path of a changed file -> its text without and with the fix
	Packages []string              `json:"packages"` // names of the packages that the fix changes

	changes []leak.Change // files that the gold patch and the hidden tests change
	gold    []leak.Change // files that the gold patch changes
}

// minToken is the length of the shortest token that reveals anything by itself, in bytes.
const minToken = 6

// maxSearched is the number of bytes of a file that are compared.
const maxSearched = 4 << 20

var (
	word    = regexp.MustCompile(`[\p{L}_][\p{L}\p{N}_]*`)
	literal = regexp.MustCompile(`"""[^"]*"""|'''[^']*'''|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'`)
	// languageWords are keywords and builtins of Python, which reveal nothing.
	languageWords = strings.Fields(`assert async await break class continue except finally global import lambda nonlocal
return yield isinstance issubclass enumerate reversed sorted filter property staticmethod classmethod getattr setattr
hasattr delattr callable bytearray bytes object memoryview complex divmod format frozenset globals locals
__init__ __name__ __class__ __dict__ ValueError TypeError KeyError IndexError AttributeError RuntimeError
StopIteration Exception NotImplementedError NotImplemented ZeroDivisionError OverflowError`)
)

// secrets compares the fixed files with every visible file of the repository.
func (c *checker) secrets(ctx context.Context) (secrets, error) {
	s := secrets{Files: map[string][2]*string{}}
	final, err := c.Store.Apply(ctx, c.base, []byte(c.task.GoldPatch))
	if err != nil {
		return s, err
	}
	if withTests, err := c.Store.Apply(ctx, final, []byte(c.task.Tests.Patch)); err == nil {
		final = withTests // hidden tests are also secret
	}
	changes, err := c.Store.Changed(ctx, c.base, final)
	if err != nil {
		return s, err
	}
	lines, words, texts := map[string]bool{}, map[string]bool{}, map[string]bool{}
	packages := map[string]bool{}
	for _, change := range changes {
		var sides [2]*string
		for i, tree := range []string{c.base, final} {
			text, exists, err := c.Store.ReadFile(ctx, tree, change.Path)
			if err != nil {
				return s, err
			}
			if exists && len(text) <= maxSearched {
				valid := strings.ToValidUTF8(string(text), "\uFFFD")
				sides[i] = &valid
			}
		}
		s.Files[change.Path] = sides
		s.changes = append(s.changes, leak.Change{Path: change.Path, Base: sides[0], Fixed: sides[1]})
		top, _, nested := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(change.Path, "src/"), "lib/"), "/")
		if name := strings.TrimSuffix(top, ".py"); nested || name != top {
			packages[strings.ToLower(strings.ReplaceAll(name, "-", "_"))] = true
		}
		if sides[1] != nil {
			addTokens(*sides[1], lines, words, texts)
		}
		if change.Status == "A" {
			words[strings.TrimSuffix(path.Base(change.Path), path.Ext(change.Path))] = true
		}
	}
	for _, w := range languageWords {
		delete(words, w)
	}
	err = c.eachFile(ctx, func(name string, data []byte, _ string) error {
		if _, changed := s.Files[name]; !changed && leak.Leftover(name) {
			return nil // a generated file makes nothing public, and leak.py searches it
		}
		s.Visible = append(s.Visible, name)
		removeTokens(string(data[:min(len(data), maxSearched)]), lines, words, texts)
		return nil
	})
	// A new file may have a name that is visible elsewhere.
	removeTokens(strings.Join(s.Visible, "\n"), lines, words, texts)
	s.Lines, s.Words, s.Texts = longTokens(lines), longTokens(words), longTokens(texts)
	s.gold = changesIn(c.task.GoldPatch, s.changes)
	s.Packages = slices.Sorted(maps.Keys(packages))
	return s, err
}

// addTokens adds the lines, words and string literals of a text to the sets.
func addTokens(text string, lines, words, texts map[string]bool) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); word.MatchString(line) {
			lines[line] = true
		}
	}
	for _, w := range word.FindAllString(text, -1) {
		words[w] = true
	}
	for _, quoted := range literal.FindAllString(text, -1) {
		texts[strings.TrimSpace(strings.Trim(quoted, `'"`))] = true
	}
}

// removeTokens removes the lines, words and string literals of a text from the sets.
func removeTokens(text string, lines, words, texts map[string]bool) {
	for line := range strings.Lines(text) {
		delete(lines, strings.TrimSpace(line))
	}
	for _, w := range word.FindAllString(text, -1) {
		delete(words, w)
	}
	for t := range texts {
		if strings.Contains(text, t) {
			delete(texts, t)
		}
	}
}

// longTokens returns the tokens of a set that have at least minToken bytes, sorted.
func longTokens(set map[string]bool) []string {
	out := []string{}
	for _, token := range slices.Sorted(maps.Keys(set)) {
		if len(token) >= minToken {
			out = append(out, token)
		}
	}
	return out
}

// find finds a token in a text that agents get. It ignores ordinary words unless they are written as code: in
// backquotes, called, or after a dot.
func (s secrets) find(text string) (token, kind string) {
	bare := strings.NewReplacer("`", "", "\r", "").Replace(text)
	for line := range strings.Lines(bare) {
		if _, ok := slices.BinarySearch(s.Lines, strings.TrimSpace(line)); ok {
			return strings.TrimSpace(line), "line"
		}
	}
	for _, line := range s.Lines {
		if len(line) >= 20 && strings.Contains(bare, line) {
			return line, "line"
		}
	}
	for _, at := range word.FindAllStringIndex(text, -1) {
		w := text[at[0]:at[1]]
		if _, ok := slices.BinarySearch(s.Words, w); ok && (!mayBeProse(w) || isCode(text, at[0], at[1])) {
			return w, "word"
		}
	}
	for _, t := range s.Texts {
		if strings.ContainsAny(t, " _./-:") && strings.Contains(text, t) {
			return t, "text"
		}
	}
	return "", ""
}

// maxQuoted is the largest number of tokens that are reported for one text.
const maxQuoted = 20

// takeQuoted returns the tokens of the fix in a text, and removes them from the secrets: agents know them from the
// text, so other places that contain them reveal nothing.
func (s *secrets) takeQuoted(text string) (found []Leak) {
	lines, words, texts := setOf(s.Lines), setOf(s.Words), setOf(s.Texts)
	for rest := *s; len(found) < maxQuoted; {
		token, kind := rest.find(text)
		if token == "" {
			break
		}
		found = append(found, Leak{Place: textPlace, Token: token, Kind: kind, From: FromTask})
		isToken := func(s string) bool { return s == token }
		rest.Lines = slices.DeleteFunc(slices.Clone(rest.Lines), isToken)
		rest.Words = slices.DeleteFunc(slices.Clone(rest.Words), isToken)
		rest.Texts = slices.DeleteFunc(slices.Clone(rest.Texts), isToken)
	}
	for line := range lines {
		if strings.Contains(text, line) {
			delete(lines, line)
		}
	}
	removeTokens(text, lines, words, texts)
	s.Lines, s.Words, s.Texts = longTokens(lines), longTokens(words), longTokens(texts)
	return found
}

func setOf(list []string) map[string]bool {
	out := map[string]bool{}
	for _, s := range list {
		out[s] = true
	}
	return out
}

// mayBeProse reports whether a name could be an ordinary word of a sentence.
func mayBeProse(w string) bool {
	return !strings.ContainsAny(w, "_0123456789") && (strings.ToLower(w) == w || strings.ToLower(w[1:]) == w[1:])
}

// isCode reports whether text[from:to] is written as code.
func isCode(text string, from, to int) bool {
	before, after := text[:from], text[to:]
	return strings.HasSuffix(before, "`") || strings.HasSuffix(before, ".") || strings.HasPrefix(after, "(") || strings.HasPrefix(after, "`")
}

// changesIn returns the changes to files that a patch names.
func changesIn(patch string, changes []leak.Change) []leak.Change {
	var out []leak.Change
	for _, c := range changes {
		if strings.Contains(patch, "/"+c.Path) && path.Ext(c.Path) != "" {
			out = append(out, c)
		}
	}
	return out
}
