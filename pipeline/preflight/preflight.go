// Package preflight checks, before a run starts, whether its parts work: disks, sandboxes, the
// debugger, model servers, stores and the cluster. Each check says what it found and what to do
// about a problem.
package preflight

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Status is the outcome of a check.
type Status string

// Values of Status. Only a failed check stops a run.
const (
	OK      Status = "ok"
	Warning Status = "warning"
	Failed  Status = "failed"
)

// Result is what a check found.
type Result struct {
	Check   string `json:"check"` // the part that was checked, such as "disk"
	Status  Status `json:"status"`
	Message string `json:"message"`
	Remedy  string `json:"remedy"` // what to do about a warning or a failure; "" if Message says it
	// Err is the error of a failed check. Its methods ExitCode and Hint, if it has them, say how a
	// run ends.
	Err error `json:"-"`
}

// Check checks one part of a run. It returns several results if the part consists of several.
// Canceling ctx ends it.
type Check func(ctx context.Context) []Result

// Run performs checks in order and passes each result to report.
func Run(ctx context.Context, checks []Check, report func(Result)) {
	for _, check := range checks {
		for _, r := range check(ctx) {
			report(r)
		}
		if ctx.Err() != nil {
			return
		}
	}
}

// Fail returns the result of a check that failed with err. The remedy is err's hint.
func Fail(check string, err error) Result {
	r := Result{Check: check, Status: Failed, Message: err.Error(), Err: err}
	var withHint interface{ Hint() string }
	if errors.As(err, &withHint) {
		r.Remedy = withHint.Hint()
	}
	return r
}

func ok(check, format string, a ...any) Result {
	return Result{Check: check, Status: OK, Message: fmt.Sprintf(format, a...)}
}

func warn(check, remedy, format string, a ...any) Result {
	return Result{Check: check, Status: Warning, Message: fmt.Sprintf(format, a...), Remedy: remedy}
}

// millis formats a duration in milliseconds.
func millis(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }

// list joins words with commas and a final "and".
func list(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}
