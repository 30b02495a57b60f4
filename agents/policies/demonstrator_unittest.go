package policies

import (
	"regexp"
	"strings"

	"github.com/tracesmith/tracesmith/agents/testcmd"
)

var (
	unittestHead  = regexp.MustCompile(`(?m)^(?:FAIL|ERROR): (\w+ \([\w.]+\))`)
	unittestFrame = regexp.MustCompile(`(?m)^  File "([^"\n]+\.py)", line \d+, in (\w+)`)
	unittestError = regexp.MustCompile(`(?m)^([A-Za-z_][\w.]*(?:: .*)?)$`)
)

// readUnittest reads the failing test from unittest's output: its id, its file, and its message,
// which is the exception with its text.
func (e *evidence) readUnittest(text string) {
	for _, block := range strings.Split(text, "\n"+strings.Repeat("=", 70)+"\n")[1:] {
		m := unittestHead.FindStringSubmatch(block)
		if m == nil || e.failure.path != "" || e.failure.id != "" && e.failure.id != testcmd.Dotted(m[1]) {
			continue
		}
		e.failure.id = testcmd.Dotted(m[1])
		for _, f := range unittestFrame.FindAllStringSubmatch(block, -1) {
			file, inside := strings.CutPrefix(f[1], e.workdir+"/")
			if inside && (f[2] == testcmd.Function(e.failure.id) || e.failure.path == "" && testcmd.IsTestFile(file)) {
				e.failure.path = file
			}
		}
		_, trace, _ := strings.Cut(block, "\nTraceback ")
		if m := unittestError.FindStringSubmatch(trace); m != nil && quotable(m[1]) {
			e.failure.message = m[1]
		}
	}
}
