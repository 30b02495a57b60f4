package leak

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// usage records which code of the repository is in use. A part of the fix stays a needle if only unused code contains
// it, because that code may have been added to reveal the fix.
type usage struct {
	imported    map[string]bool // names in import statements
	named       map[string]int  // how often each name occurs in code
	defined     map[string]int  // how many functions have each name
	occurrences []occurrence
}

// occurrence is a needle in code of the repository.
type occurrence struct {
	kind   matchKind
	hash   uint64
	module string // module that must be imported for the code to be in use; "" if none must
	name   string // function that must be used for the code to be in use; "" if none must
}

func newUsage() usage {
	return usage{imported: map[string]bool{}, named: map[string]int{}, defined: map[string]int{}}
}

var (
	// entryModule matches modules that run without being imported.
	entryModule = regexp.MustCompile(`^(?:__init__|__main__|conftest|setup|test|tests|test_.*|.*_tests?|manage|noxfile)$`)
	// frameworkName matches functions that Python or a framework calls.
	frameworkName = regexp.MustCompile(`^(?:__\w+__|test\w*|setup\w*|teardown\w*|setUp\w*|tearDown\w*|visit_\w+|depart_\w+|do_\w+|on_\w+|pytest_\w+|handle\w*|main)$`)
)

// addCode counts the names in the code of a file. list holds the functions of the code.
func (s *usage) addCode(code string, list []function) {
	depth := 0 // open brackets in an import statement
	for line := range strings.Lines(code) {
		from := strings.Index(line, "import")
		if from < 0 && depth == 0 {
			continue
		}
		if body := strings.TrimLeft(line, " \t"); depth == 0 && !strings.HasPrefix(body, "import") && !strings.HasPrefix(body, "from") {
			continue
		}
		for _, name := range identifier.FindAllString(line, -1) {
			s.imported[name] = true
		}
		depth = max(0, depth+strings.Count(line, "(")-strings.Count(line, ")"))
	}
	for _, f := range list {
		s.defined[f.name]++
	}
	for i := 0; i < len(code); {
		from := i
		for i < len(code) && classes[code[i]] == wordByte {
			i++
		}
		if i > from {
			s.named[code[from:i]]++
		} else {
			i++
		}
	}
}

// Leftover reports whether a path belongs to the output of a build, a run or an editor, which may come from another
// version of the code.
func Leftover(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if slices.Contains(generatedNames, part) || strings.HasSuffix(part, ".egg-info") || strings.HasSuffix(part, ".dist-info") {
			return true
		}
	}
	return strings.HasSuffix(name, "~") || slices.Contains(generatedNames, path.Ext(name))
}

var generatedNames = strings.Fields(`.git __pycache__ build dist .eggs .tox .nox .mypy_cache .ruff_cache .pytest_cache htmlcov
.pyc .pyo .orig .rej .bak .swp .patch .diff .whl .egg`)

// proseExt reports whether files with the extension of name contain prose.
func proseExt(name string) bool {
	switch path.Ext(name) {
	case ".md", ".rst", ".txt", "":
		return true
	}
	return false
}
