package policies

import (
	"regexp"

	"github.com/tracesmith/tracesmith/agents/testcmd"
)

// stackFrame matches a frame in pdb's answer to w. ">" marks the current one.
var stackFrame = regexp.MustCompile(`(?m)^([> ]) (.+)\(\d+\)([\w<>]+)\(`)

// calledByTest reports whether the failing test is among the callers of the current frame. stack is
// pdb's answer to w. Because classes inherit tests, the test may be in another test file than its ID
// names.
func calledByTest(stack string, f failure) bool {
	test, found := testcmd.Function(f.id), false
	for _, m := range stackFrame.FindAllStringSubmatch(stack, -1) {
		if m[1] == ">" {
			return found
		}
		found = found || m[3] == test && (m[2] == f.path || testcmd.IsTestFile(m[2]))
	}
	return false
}
