package builtin

import (
	"errors"
	"regexp/syntax"
	"strings"

	"github.com/tracesmith/tracesmith/tools"
)

// missingSyntax maps syntax that RE2 lacks to its name. After a semicolon or colon follows a hint
// for the model.
var missingSyntax = map[string]string{
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

// patternMistake returns an error that tells the model why its pattern is invalid and what to do
// instead.
func patternMistake(err error) error {
	syntaxErr, ok := errors.AsType[*syntax.Error](err)
	if !ok {
		return tools.NewUserError("grep cannot read the pattern: %v.", err)
	}
	const format = "The pattern uses %s: this syntax (RE2) has no %s. "
	expr := syntaxErr.Expr
	for n := min(len(expr), 4); n > 1; n-- {
		if what, known := missingSyntax[expr[:n]]; known {
			hint := ""
			if !strings.ContainsAny(what, ";:") {
				hint = "Search with a simpler pattern and pick from the matches, or use bash: grep -rnP."
			}
			return tools.NewUserError(strings.TrimSpace(format+hint), expr[:n], what)
		}
	}
	if syntaxErr.Code == syntax.ErrInvalidEscape && len(expr) == 2 && '1' <= expr[1] && expr[1] <= '9' {
		return tools.NewUserError(format+"Search with a simpler pattern and pick from the matches, or use bash: grep -rnP.", expr, "backreferences")
	}
	return tools.NewUserError("grep cannot read the pattern: %s: %s. To search for text that contains special characters, "+
		"set fixed to true.", syntaxErr.Code, expr)
}
