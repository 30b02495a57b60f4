package shellwords_test

import (
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/env/shellwords"
)

func TestSplit(t *testing.T) {
	for line, want := range map[string][]shellwords.Word{
		"":                  nil,
		" a\tb \\\n c":      {{Raw: "a", Text: "a", Fixed: true}, {Raw: "b", Text: "b", Fixed: true}, {Raw: "c", Text: "c", Fixed: true}},
		`'a b'"c \" \d"\ e`: {{Raw: `'a b'"c \" \d"\ e`, Text: `a bc " \d e`, Fixed: true}},
		`-k "not $x" ''`:    {{Raw: "-k", Text: "-k", Fixed: true}, {Raw: `"not $x"`, Text: "not $x", Expands: true}, {Raw: "''", Fixed: true}},
		// An unquoted pattern is neither Fixed nor an expansion.
		"t.py::t[1-2] '*' *.p": {{Raw: "t.py::t[1-2]", Text: "t.py::t[1-2]"}, {Raw: "'*'", Text: "*", Fixed: true}, {Raw: "*.p", Text: "*.p"}},
		"$(a | b)`c`${d}":      {{Raw: "$(a | b)`c`${d}", Text: "$(a | b)`c`${d}", Expands: true}},
		"a#b":                  {{Raw: "a#b", Text: "a#b", Fixed: true}},
	} {
		got, err := shellwords.Split(line)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%q: %v %s", line, err, diff)
		}
	}
}

func TestSplitErrors(t *testing.T) {
	for line, want := range map[string]error{
		"a 'b": shellwords.ErrUnclosed, `a "b`: shellwords.ErrUnclosed, "a $(b": shellwords.ErrUnclosed, `a \`: shellwords.ErrUnclosed,
		"a | b": shellwords.ErrNoWord, "a\nb": shellwords.ErrNoWord, "a # b": shellwords.ErrNoWord, "a >b": shellwords.ErrNoWord,
		"a <(b)": shellwords.ErrNoWord, "a<(b)": shellwords.ErrNoWord, "@(a|b)": shellwords.ErrNoWord, "(a)": shellwords.ErrNoWord,
	} {
		if _, err := shellwords.Split(line); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", line, err, want)
		}
	}
}

func TestShellSplitsCommandIntoItsWords(t *testing.T) {
	words := []string{"a b", "$HOME", "it's", "", "plain", "`x`", "*", "\\n"}
	out, err := exec.CommandContext(t.Context(), "sh", "-c", "printf '%s|' "+shellwords.Command(words...)).Output()
	if err != nil || string(out) != "a b|$HOME|it's||plain|`x`|*|\\n|" {
		t.Errorf("%q, %v", out, err)
	}
}

// A deeply nested line from a model must not overflow the parser's stack.
func TestDeepLinesAreBounded(t *testing.T) {
	for _, part := range []string{`"$(`, "${x:-", "$(if "} {
		if _, err := shellwords.Split(strings.Repeat(part, 60<<10/len(part))); !errors.Is(err, shellwords.ErrUnclosed) {
			t.Errorf("%s: %v", part, err)
		}
		if _, err := shellwords.Split(strings.Repeat(part, 1<<20)); !errors.Is(err, shellwords.ErrTooLong) {
			t.Errorf("%s: %v", part, err)
		}
	}
}
