package discover

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

var (
	imported  = regexp.MustCompile(`(?m)^[ \t]*(?:from|import)[ \t]+([A-Za-z_]\w*)`)
	testCase  = regexp.MustCompile(`\bTestCase\b`)
	testFile  = regexp.MustCompile(`^(?:test_.*|.*_tests?|tests?)\.py$`)
	testDir   = regexp.MustCompile(`^_?(?:tests?|testing|unittests?)$`)
	plainTest = regexp.MustCompile(`(?m)^(?:async )?def test_`)
)

// isTest reports whether a path is a file of tests.
func isTest(file string) bool {
	if !strings.HasSuffix(file, ".py") {
		return false
	}
	return testFile.MatchString(path.Base(file)) || path.Base(file) == "conftest.py" ||
		slices.ContainsFunc(strings.Split(path.Dir(file), "/"), testDir.MatchString)
}

// readLayout finds the tests, what they import, and the directory of the packages.
func (e *evidence) readLayout() {
	var cases, functions, usesPytest bool
	for _, file := range e.paths {
		if strings.HasPrefix(file, "src/") && path.Base(file) == "__init__.py" && strings.Count(file, "/") == 2 ||
			strings.HasPrefix(file, "src/") && strings.HasSuffix(file, ".py") && strings.Count(file, "/") == 1 && e.project != "" {
			e.source = "src"
		}
		if !isTest(file) || strings.HasPrefix(file, "docs/") || strings.HasPrefix(file, "examples/") {
			continue
		}
		text := e.text(file)
		for _, m := range imported.FindAllStringSubmatch(text, -1) {
			e.imports[m[1]] = true
		}
		cases = cases || testCase.MatchString(text)
		functions = functions || plainTest.MatchString(text)
		usesPytest = usesPytest || strings.Contains(text, "import pytest") || strings.Contains(text, "from pytest")
		if testFile.MatchString(path.Base(file)) {
			e.tests = append(e.tests, testPlace(file))
		}
	}
	if e.source != "" {
		e.fact("layout", "packages in "+e.source, e.source)
	}
	e.tests = outermost(e.tests)
	if len(e.tests) > 0 {
		e.fact("layout", "tests in "+strings.Join(e.tests[:min(len(e.tests), 5)], " "), e.tests[0])
	}
	e.pytest = e.pytest || usesPytest || functions || slices.ContainsFunc(e.sets, func(s set) bool {
		return slices.ContainsFunc(s.listed, func(r string) bool { return strings.HasPrefix(distribution(r), "pytest") })
	})
	e.unittest = cases && !e.pytest
}

// testPlace is the directory of tests that a test file lies in, or the file itself if that is the root.
func testPlace(file string) string {
	parts := strings.Split(path.Dir(file), "/")
	for i, p := range parts {
		if testDir.MatchString(p) {
			return strings.Join(parts[:i+1], "/")
		}
	}
	if path.Dir(file) == "." {
		return file
	}
	return path.Dir(file)
}

// outermost leaves out what lies below another directory.
func outermost(list []string) []string {
	slices.Sort(list)
	var out []string
	for _, p := range list {
		if !slices.ContainsFunc(out, func(have string) bool { return p == have || strings.HasPrefix(p, have+"/") }) {
			out = append(out, p)
		}
	}
	return out
}
