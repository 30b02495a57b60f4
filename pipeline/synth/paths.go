package synth

import (
	"slices"
	"strings"
)

// isTest says whether a path is that of tests, by the names that runners and
// people give them.
func isTest(file string) bool {
	parts := strings.Split(file, "/")
	name := parts[len(parts)-1]
	if strings.HasPrefix(name, "test") || strings.HasSuffix(name, "_test.py") || name == "conftest.py" {
		return true
	}
	return slices.ContainsFunc(parts[:len(parts)-1], func(p string) bool { return p == "test" || p == "tests" || p == "testing" })
}

// isProgram says that a file is Python and no test, as far as its name tells.
func isProgram(p string) bool {
	base := p[strings.LastIndexByte(p, '/')+1:]
	return strings.HasSuffix(p, ".py") && !isTest(p) && base != "setup.py" && base != "noxfile.py" &&
		!strings.HasPrefix(p, "docs/") && !strings.HasPrefix(p, "examples/")
}
