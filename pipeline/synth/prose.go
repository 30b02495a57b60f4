package synth

import (
	"fmt"
	"slices"
	"strings"
)

// sentences joins the sentences that are not empty.
func sentences(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), " ")
}

// pluralOf returns one, or many with the number.
func pluralOf(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return fmt.Sprintf(many, n)
}

// paragraphs joins the parts that are not empty.
func paragraphs(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), "\n\n")
}

// indented indents code by four spaces, as Markdown requires for a code block.
func indented(code string) string {
	if code == "" {
		return ""
	}
	return strings.ReplaceAll("    "+strings.ReplaceAll(code, "\n", "\n    "), "\n    \n", "\n\n")
}

// plural returns a number with one of two nouns.
func plural(n int, one, many string) string {
	if n == 1 {
		return "one " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
