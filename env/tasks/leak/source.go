package leak

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// source notes which parts of the repository's code are in use. What only code has that nothing
// uses is not taken off the needles: it may have been put there to show the fix.
type source struct {
	imported map[string]bool
	named    map[string]int // occurrences of names in code that may stand for a function
	defined  map[string]int
	seen     []place
}

// place is a part of the fix in code, outside of the changed files.
type place struct {
	way    way
	hash   uint64
	module string // path of its file, if the place counts only if the file is imported
	name   string // of the function around it, if the place counts only if it is used
}

func newSource() source {
	return source{imported: map[string]bool{}, named: map[string]int{}, defined: map[string]int{}}
}

var (
	// Programs start by themselves, or a tool starts them.
	program = regexp.MustCompile(`^(?:__init__|__main__|conftest|setup|test|tests|test_.*|.*_tests?|manage|noxfile)$`)
	// A framework calls functions of these names.
	called = regexp.MustCompile(`^(?:__\w+__|test\w*|setup\w*|teardown\w*|setUp\w*|tearDown\w*|visit_\w+|depart_\w+|do_\w+|on_\w+|pytest_\w+|handle\w*|main)$`)
)

// uses counts the names in code.
func (s *source) uses(code string, list []function) {
	depth := 0 // of the list of an import
	for line := range strings.Lines(code) {
		from := strings.Index(line, "import")
		if from < 0 && depth == 0 {
			continue
		}
		if body := strings.TrimLeft(line, " \t"); depth == 0 && !strings.HasPrefix(body, "import") && !strings.HasPrefix(body, "from") {
			continue
		}
		for _, name := range nameIn.FindAllString(line, -1) {
			s.imported[name] = true
		}
		depth = max(0, depth+strings.Count(line, "(")-strings.Count(line, ")"))
	}
	for _, f := range list {
		s.defined[f.name]++
	}
	for i := 0; i < len(code); {
		from := i
		for i < len(code) && classes[code[i]] == letter {
			i++
		}
		if i > from {
			s.named[code[from:i]]++
		} else {
			i++
		}
	}
}

// Leftover reports whether a path is of a product of builds, runs or editors, which may come from
// another version.
func Leftover(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if slices.Contains(leftovers, part) || strings.HasSuffix(part, ".egg-info") || strings.HasSuffix(part, ".dist-info") {
			return true
		}
	}
	return strings.HasSuffix(name, "~") || slices.Contains(leftovers, path.Ext(name))
}

var leftovers = strings.Fields(`.git __pycache__ build dist .eggs .tox .nox .mypy_cache .ruff_cache .pytest_cache htmlcov
.pyc .pyo .orig .rej .bak .swp .patch .diff .whl .egg`)

func proseExt(name string) bool {
	switch path.Ext(name) {
	case ".md", ".rst", ".txt", "":
		return true
	}
	return false
}
