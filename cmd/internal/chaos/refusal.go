package chaos

import (
	"cmp"
	"fmt"
	"strings"
)

// RefusedError means that a trial could not begin: no model was called and nothing was
// staged.
type RefusedError struct {
	Code int // exit code of the command
	Err  error
	Try  string // what the user can try next; "" if Err already says it
}

func (e *RefusedError) Error() string { return e.Err.Error() }
func (e *RefusedError) Unwrap() error { return e.Err }

// ExitCode returns the exit code of the command.
func (e *RefusedError) ExitCode() int { return e.Code }

// Hint returns what the user can try next, or "".
func (e *RefusedError) Hint() string { return e.Try }

// refusal returns the error of a process that ended before its first model call.
func refusal(process string, code int, stderr string) *RefusedError {
	text, try := errorMessage(stderr)
	return &RefusedError{Code: code, Err: fmt.Errorf("%s cannot start: %s", process, text), Try: try}
}

// errorMessage extracts the last error message of a tracesmith command, and the remedy after
// "try: ", from its standard error. If there is no such message, text is the end of stderr.
func errorMessage(stderr string) (text, try string) {
	const begin, remedy = "tracesmith: ", "try: "
	at := strings.LastIndex("\n"+stderr, "\n"+begin)
	if at < 0 {
		return cmp.Or(tail(stderr, 600), "it did not say why"), ""
	}
	var lines []string
	for line := range strings.Lines(stderr[at+len(begin):]) {
		line = strings.TrimSpace(line)
		if hint, ok := strings.CutPrefix(line, remedy); ok {
			return strings.Join(lines, "\n"), hint
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n"), ""
}
