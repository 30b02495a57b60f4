package builtin

import (
	"errors"
	"regexp/syntax"
	"strings"

	"github.com/tracesmith/tracesmith/tools"
)

// insteadOf maps syntax that RE2 lacks to its name and, after a semicolon, to what to
// write instead.
var insteadOf = map[string]string{
	`(?=`: "lookahead",
	`(?!`: "negative lookahead",
	`(?<`: "lookbehind",
	`(?>`: "atomic groups",
	`(?|`: "branch resets",
	`(?#`: "comments",
	`(?R`: "recursion",
	`\K`:  `\K`,
	`\Z`:  `\Z; write $`,
	`\h`:  `\h; write [ \t]`,
	`\R`:  `\R: grep matches one line at a time`,
	`\X`:  `\X; write .`,
	`\e`:  `\e; write \x1b`,
	`\u`:  `\u; write the character itself, or its number as in \x{20AC}`,
	`++`:  "possessive repetition; write + alone",
	`*+`:  "possessive repetition; write * alone",
	`?+`:  "possessive repetition; write ? alone",
	`\g`:  "backreferences",
	`\k`:  "backreferences",
	`(?P`: "backreferences",
}

// patternMistake explains why a pattern is invalid and what to do instead.
func patternMistake(err error) error {
	parse, ok := errors.AsType[*syntax.Error](err)
	if !ok {
		return tools.Mistake("grep cannot read the pattern: %v.", err)
	}
	const perl = "The pattern uses %s: this syntax (RE2) has no %s. "
	expr := parse.Expr
	for n := min(len(expr), 4); n > 1; n-- {
		if what, known := insteadOf[expr[:n]]; known {
			hint := ""
			if !strings.ContainsAny(what, ";:") {
				hint = "Search with a simpler pattern and pick from the matches, or use bash: grep -rnP."
			}
			return tools.Mistake(strings.TrimSpace(perl+hint), expr[:n], what)
		}
	}
	if parse.Code == syntax.ErrInvalidEscape && len(expr) == 2 && '1' <= expr[1] && expr[1] <= '9' {
		return tools.Mistake(perl+"Search with a simpler pattern and pick from the matches, or use bash: grep -rnP.", expr, "backreferences")
	}
	return tools.Mistake("grep cannot read the pattern: %s: %s. To search for text that contains special characters, "+
		"set fixed to true.", parse.Code, expr)
}
