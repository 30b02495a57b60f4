package check

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/tasks/leak"
)

// secrets are the lines, words and texts that only the fixed version of a repository has.
type secrets struct {
	Lines    []string              `json:"lines"` // whole added lines, without indent
	Words    []string              `json:"words"` // identifiers
	Texts    []string              `json:"texts"` // contents of string literals
	Visible  []string              `json:"visible"`
	Files    map[string][2]*string `json:"files"` // changed files: text in the repository, in the fixed version
	Packages []string              `json:"packages"`

	changes []leak.Change // files that the gold patch and the hidden tests change
	gold    []leak.Change // those of the gold patch
}

// minToken is how long a token must be to reveal anything by itself.
const minToken = 6

// maxSearched bounds the bytes of one file that are compared.
const maxSearched = 4 << 20

var (
	word    = regexp.MustCompile(`[\p{L}_][\p{L}\p{N}_]*`)
	literal = regexp.MustCompile(`"""[^"]*"""|'''[^']*'''|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'`)
	// Words of the language reveal nothing.
	ofLanguage = strings.Fields(`assert async await break class continue except finally global import lambda nonlocal
return yield isinstance issubclass enumerate reversed sorted filter property staticmethod classmethod getattr setattr
hasattr delattr callable bytearray bytes object memoryview complex divmod format frozenset globals locals
__init__ __name__ __class__ __dict__ ValueError TypeError KeyError IndexError AttributeError RuntimeError
StopIteration Exception NotImplementedError NotImplemented ZeroDivisionError OverflowError`)
)

// secrets compares the fixed version with every visible file of the repository.
func (c *checker) secrets(ctx context.Context) (secrets, error) {
	s := secrets{Files: map[string][2]*string{}}
	final, err := c.Store.Apply(ctx, c.base, []byte(c.task.GoldPatch))
	if err != nil {
		return s, err
	}
	if with, err := c.Store.Apply(ctx, final, []byte(c.task.Tests.Patch)); err == nil {
		final = with // the hidden tests are secret as well
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
			text, there, err := c.Store.ReadFile(ctx, tree, change.Path)
			if err != nil {
				return s, err
			}
			if there && len(text) <= maxSearched {
				shown := strings.ToValidUTF8(string(text), "\uFFFD")
				sides[i] = &shown
			}
		}
		s.Files[change.Path] = sides
		s.changes = append(s.changes, leak.Change{Path: change.Path, Base: sides[0], Fixed: sides[1]})
		top, _, nested := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(change.Path, "src/"), "lib/"), "/")
		if name := strings.TrimSuffix(top, ".py"); nested || name != top {
			packages[strings.ToLower(strings.ReplaceAll(name, "-", "_"))] = true
		}
		if sides[1] != nil {
			tokens(*sides[1], lines, words, texts)
		}
		if change.Status == "A" {
			words[strings.TrimSuffix(path.Base(change.Path), path.Ext(change.Path))] = true
		}
	}
	for _, w := range ofLanguage {
		delete(words, w)
	}
	err = c.visible(ctx, func(name, text string) {
		if _, changed := s.Files[name]; !changed && leak.Leftover(name) {
			return // it makes nothing public, and is searched like the rest
		}
		s.Visible = append(s.Visible, name)
		without(text, lines, words, texts)
	})
	// A new file may have a name that is visible elsewhere.
	without(strings.Join(s.Visible, "\n"), lines, words, texts)
	s.Lines, s.Words, s.Texts = long(lines), long(words), long(texts)
	s.gold = ofPatch(c.task.GoldPatch, s.changes)
	s.Packages = slices.Sorted(maps.Keys(packages))
	return s, err
}

// visible reads every file of the repository.
func (c *checker) visible(ctx context.Context, each func(name, text string)) error {
	return env.Stream(
		func(w io.Writer) error { return c.Store.Export(ctx, c.base, w) },
		func(r io.Reader) error { return eachText(r, each) },
	)
}

// eachText calls each with every file and symlink of an archive, and the beginning of its text.
func eachText(r io.Reader, each func(name, text string)) error {
	for in := tar.NewReader(r); ; {
		head, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		text, err := io.ReadAll(io.LimitReader(in, maxSearched))
		if err != nil {
			return err
		}
		if head.Typeflag != tar.TypeDir {
			each(strings.TrimSuffix(head.Name, "/"), string(text))
		}
	}
}

func tokens(text string, lines, words, texts map[string]bool) {
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

// without removes the lines, words and literals of a text.
func without(text string, lines, words, texts map[string]bool) {
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

func long(set map[string]bool) []string {
	out := []string{}
	for _, token := range slices.Sorted(maps.Keys(set)) {
		if len(token) >= minToken {
			out = append(out, token)
		}
	}
	return out
}

// in finds a token in text for an agent. It ignores a plain word of prose unless it is written as
// code: in backquotes, called, or after a dot.
func (s secrets) in(text string) (token, kind string) {
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
		if _, ok := slices.BinarySearch(s.Words, w); ok && (!plain(w) || asCode(text, at[0], at[1])) {
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

// maxQuoted bounds how many tokens of one text are reported.
const maxQuoted = 20

// quoted returns the tokens of the fix in a text, and removes them from the secrets: a reader of the
// text knows them, wherever else they occur.
func (s *secrets) quoted(text string) (found []Leak) {
	lines, words, texts := set(s.Lines), set(s.Words), set(s.Texts)
	for rest := *s; len(found) < maxQuoted; {
		token, kind := rest.in(text)
		if token == "" {
			break
		}
		found = append(found, Leak{Place: textPlace, Token: token, Kind: kind, From: FromTask})
		gone := func(have string) bool { return have == token }
		rest.Lines = slices.DeleteFunc(slices.Clone(rest.Lines), gone)
		rest.Words = slices.DeleteFunc(slices.Clone(rest.Words), gone)
		rest.Texts = slices.DeleteFunc(slices.Clone(rest.Texts), gone)
	}
	for line := range lines {
		if strings.Contains(text, line) {
			delete(lines, line)
		}
	}
	without(text, lines, words, texts)
	s.Lines, s.Words, s.Texts = long(lines), long(words), long(texts)
	return found
}

func set(list []string) map[string]bool {
	out := map[string]bool{}
	for _, s := range list {
		out[s] = true
	}
	return out
}

// plain reports whether a name could be a word of a sentence.
func plain(w string) bool {
	return !strings.ContainsAny(w, "_0123456789") && (strings.ToLower(w) == w || strings.ToLower(w[1:]) == w[1:])
}

func asCode(text string, from, to int) bool {
	before, after := text[:from], text[to:]
	return strings.HasSuffix(before, "`") || strings.HasSuffix(before, ".") || strings.HasPrefix(after, "(") || strings.HasPrefix(after, "`")
}

// ofPatch returns the changes that a patch makes.
func ofPatch(patch string, changes []leak.Change) []leak.Change {
	var out []leak.Change
	for _, c := range changes {
		if strings.Contains(patch, "/"+c.Path) && path.Ext(c.Path) != "" {
			out = append(out, c)
		}
	}
	return out
}
