package chaos

import (
	"cmp"
	"fmt"
	"strings"
)

// RefusedError is the end of a trial that could not begin: nothing was asked and
// nothing is staged.
type RefusedError struct {
	Code int // that the program ends with
	Err  error
	Try  string // the next thing to try, "" where Err says it
}

func (e *RefusedError) Error() string { return e.Err.Error() }
func (e *RefusedError) Unwrap() error { return e.Err }

// ExitCode and Hint are read off any error that has them.
func (e *RefusedError) ExitCode() int { return e.Code }

// Hint is the next thing to try.
func (e *RefusedError) Hint() string { return e.Try }

// refusal is what a process said that ended before it asked anything.
func refusal(who string, code int, errs string) *RefusedError {
	text, try := words(errs)
	return &RefusedError{Code: code, Err: fmt.Errorf("%s cannot start: %s", who, text), Try: try}
}

// words takes the message of a failed command, and its remedy, from its standard
// error.
func words(errs string) (text, try string) {
	const begin, remedy = "tracesmith: ", "try: "
	at := strings.LastIndex("\n"+errs, "\n"+begin)
	if at < 0 {
		return cmp.Or(tail(errs, 600), "it did not say why"), ""
	}
	var lines []string
	for line := range strings.Lines(errs[at+len(begin):]) {
		line = strings.TrimSpace(line)
		if hint, ok := strings.CutPrefix(line, remedy); ok {
			return strings.Join(lines, "\n"), hint
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n"), ""
}
