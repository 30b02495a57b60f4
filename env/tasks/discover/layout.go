package discover

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

var (
	importLine   = regexp.MustCompile(`(?m)^[ \t]*(?:from|import)[ \t]+([A-Za-z_]\w*)`)
	testCaseName = regexp.MustCompile(`\bTestCase\b`)
	defaultFile  = regexp.MustCompile(`^(?:test_.*|.*_test)\.py$`) // the default of pytest's setting python_files
	testFile     = regexp.MustCompile(`^(?:test_.*|.*_tests?|tests?)\.py$`)
	testDir      = regexp.MustCompile(`^_?(?:tests?|testing|unittests?)$`)
	testFunction = regexp.MustCompile(`(?m)^(?:async )?def test_`)
)

// extensionSources are the file name extensions of sources of extension modules.
var extensionSources = strings.Fields(".c .cc .cpp .pyx .rs .f .f90")

// sourceRoots are the usual directories of packages, relative to the root.
var sourceRoots = []string{"", "src", "lib", "Lib", "python", "source"}

// notImported are directories and modules in the root that the tests do not import by these names.
var notImported = wordSet("setup conftest noxfile tasks docs doc examples example benchmarks benchmark bench tools scripts build dist test tests testing")

// noProgram reports whether a directory holds tests or documentation, and not the program.
func noProgram(dir string) bool {
	return testDir.MatchString(dir) || dir == "docs" || dir == "doc" || dir == "examples"
}

// isTest reports whether a Python file contains tests or code for tests.
func isTest(file string) bool {
	if !strings.HasSuffix(file, ".py") {
		return false
	}
	return testFile.MatchString(path.Base(file)) || path.Base(file) == "conftest.py" ||
		slices.ContainsFunc(strings.Split(path.Dir(file), "/"), testDir.MatchString)
}

// readLayout finds the tests, what they import, and the directory of the packages.
func (e *evidence) readLayout() {
	var hasTestCases, hasTestFunctions, importsPytest bool
	for _, file := range e.paths {
		if slices.Contains(extensionSources, path.Ext(file)) && !slices.ContainsFunc(strings.Split(path.Dir(file), "/"), noProgram) {
			e.compiled = true
		}
		if !isTest(file) || strings.HasPrefix(file, "docs/") || strings.HasPrefix(file, "examples/") {
			continue
		}
		text := e.text(file)
		for _, m := range importLine.FindAllStringSubmatch(text, -1) {
			e.imports[m[1]] = true
		}
		hasTestCases = hasTestCases || testCaseName.MatchString(text)
		hasTestFunctions = hasTestFunctions || testFunction.MatchString(text)
		importsPytest = importsPytest || strings.Contains(text, "import pytest") || strings.Contains(text, "from pytest")
		if testFile.MatchString(path.Base(file)) {
			e.tests = append(e.tests, testRoot(file))
			if defaultFile.MatchString(path.Base(file)) {
				e.collected = true
			} else {
				e.oddlyNamed = append(e.oddlyNamed, file)
			}
		}
	}
	e.source = e.sourceDir()
	if e.source != "" {
		e.addFact("layout", "packages in "+e.source, e.source)
	}
	e.tests = withoutNested(e.tests)
	if len(e.tests) > 0 {
		e.addFact("layout", "tests in "+strings.Join(e.tests[:min(len(e.tests), 5)], " "), e.tests[0])
	}
	e.pytest = e.pytest || importsPytest || hasTestFunctions || slices.ContainsFunc(e.sets, func(s requirementSet) bool {
		return slices.ContainsFunc(s.listed, func(r string) bool { return strings.HasPrefix(distribution(r), "pytest") })
	})
	e.unittest = hasTestCases && !e.pytest
}

// sourceDir returns the directory that holds the packages, "" if it is the root.
func (e *evidence) sourceDir() string {
	inRoot := slices.ContainsFunc(e.paths, func(file string) bool {
		dir, ok := strings.CutSuffix(file, "/__init__.py")
		return ok && !strings.Contains(dir, "/") && !notImported[dir] && !slices.Contains(sourceRoots, dir)
	})
	for _, root := range slices.Concat(e.roots, sourceRoots) {
		if root == "" || root != "src" && inRoot && !slices.Contains(e.roots, root) {
			continue
		}
		for _, file := range e.paths {
			rest, below := strings.CutPrefix(file, root+"/")
			isPackage := path.Base(rest) == "__init__.py" && strings.Count(rest, "/") == 1
			if below && (isPackage || e.project != "" && strings.HasSuffix(rest, ".py") && !strings.Contains(rest, "/") && rest != "__init__.py") {
				return root
			}
		}
	}
	return ""
}

// testRoot returns the outermost directory of tests around a test file, or else the file's directory. It returns the
// file itself if that directory is the root of the repository.
func testRoot(file string) string {
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

// withoutNested sorts the paths and returns those that do not lie below another one.
func withoutNested(list []string) []string {
	slices.Sort(list)
	var out []string
	for _, p := range list {
		if !slices.ContainsFunc(out, func(have string) bool { return p == have || strings.HasPrefix(p, have+"/") }) {
			out = append(out, p)
		}
	}
	return out
}
