package policies

import (
	"regexp"
	"strings"
)

// stackFrame matches a frame in pdb's answer to w. ">" marks the current one.
var stackFrame = regexp.MustCompile(`(?m)^([> ]) (.+)\(\d+\)([\w<>]+)\(`)

// calledByTest reports whether the failing test is among the callers of the current frame. stack is
// pdb's answer to w. Because classes inherit tests, the test may be in another test file than its ID
// names.
func calledByTest(stack string, f failure) bool {
	test, found := testFunction(f.id), false
	for _, m := range stackFrame.FindAllStringSubmatch(stack, -1) {
		if m[1] == ">" {
			return found
		}
		found = found || m[3] == test && (m[2] == f.path || isTest(m[2]))
	}
	return false
}

// testFunction returns the function named in a test ID, without parameters.
func testFunction(id string) string {
	id, _, _ = strings.Cut(id, "[") // parameters
	if i := strings.LastIndex(id, "::"); i >= 0 {
		return id[i+len("::"):]
	}
	return id[strings.LastIndex(id, ".")+1:]
}

// testClass returns the class named in a test ID, or "" for a test outside a class.
func testClass(id string) string {
	id, _, _ = strings.Cut(id, "[")
	parts, first := strings.Split(id, "::"), 1 // a file comes first
	if len(parts) == 1 {
		parts, first = strings.Split(id, "."), 0
	}
	if len(parts)-2 < first {
		return ""
	}
	return parts[len(parts)-2]
}
