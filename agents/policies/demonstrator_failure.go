package policies

import (
	"cmp"
	"regexp"
	"strings"

	"github.com/tracesmith/tracesmith/agents/testcmd"
)

// failure is the failing test that the script follows. path is the test's file, message is the
// line in which the test runner reports the error, and report is what it says about the test.
type failure struct {
	id, path, message, report string
}

var (
	failedID   = regexp.MustCompile(`(?m)^  (\S.*) \((?:failed|error)\)$`)
	location   = regexp.MustCompile(`(?m)^([\w./-]+\.py):\d+:`)
	reportHead = regexp.MustCompile(`(?m)^(?:_{3,} |={70}\n(?:FAIL|ERROR): )`) // before the name of a test
	errorLine  = regexp.MustCompile(`(?m)^E\s+(\S.*)$`)
)

// readTests reads the first failing test from an answer of eval.
func (e *evidence) readTests(text string) {
	e.failure = failure{}
	if m := failedID.FindStringSubmatch(text); m != nil {
		e.failure.id = testcmd.Dotted(m[1])
		if path, _, ok := strings.Cut(m[1], "::"); ok {
			e.failure.path = path
		}
	}
	for _, m := range location.FindAllStringSubmatch(text, -1) {
		if e.failure.path == "" && testcmd.IsTestFile(m[1]) {
			e.failure.id, e.failure.path = cmp.Or(e.failure.id, m[1]), m[1]
		}
	}
	if m := errorLine.FindStringSubmatch(text); m != nil && quotable(m[1]) {
		e.failure.message = strings.TrimSpace(m[1])
	}
	e.readUnittest(text)
	if name := testcmd.Function(e.failure.id); name != "" {
		for _, part := range reportHead.Split(text, -1) {
			if head, _, _ := strings.Cut(part, "\n"); strings.Contains(head, name) && e.failure.report == "" {
				e.failure.report = part
			}
		}
	}
}

// quotable reports whether a message can quote a line of output in backquotes.
func quotable(line string) bool { return len(line) <= 160 && !strings.Contains(line, "`") }
