package synth

import (
	"slices"
	"strings"
)

// isTest reports whether a path looks like a test file, by the usual names of test files
// and directories.
func isTest(file string) bool {
	parts := strings.Split(file, "/")
	name := parts[len(parts)-1]
	if strings.HasPrefix(name, "test") || strings.HasSuffix(name, "_test.py") || name == "conftest.py" {
		return true
	}
	return slices.ContainsFunc(parts[:len(parts)-1], func(p string) bool { return p == "test" || p == "tests" || p == "testing" })
}

// isProgram reports whether a path looks like Python code of the program itself: not a test,
// documentation, an example or a build script.
func isProgram(p string) bool {
	base := p[strings.LastIndexByte(p, '/')+1:]
	return strings.HasSuffix(p, ".py") && !isTest(p) && base != "setup.py" && base != "noxfile.py" &&
		!strings.HasPrefix(p, "docs/") && !strings.HasPrefix(p, "examples/")
}
