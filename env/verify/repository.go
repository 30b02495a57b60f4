package verify

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// textFunc returns the text of a file in one tree, "" if the file does not exist.
type textFunc func(file string) string

// repoLayout is a classification of the files of a base tree: which Python files are tests, which are
// helpers that only tests import, and which are the program. It is based on the texts of the files; no
// code runs. A file counts as part of the program unless the texts clearly say otherwise.
type repoLayout struct {
	texts           map[string]string   // of Python files and metadataFiles
	tests           map[string]bool     // test files and conftest.py
	imports         map[string][]string // file -> files of the repository that it imports
	testDirs        map[string]bool     // directories whose names say that they contain tests, and which do
	used            map[string]bool     // files that program code imports
	programWords    map[string]bool     // parts of paths that occur in program files
	testWords       map[string]bool     // parts of paths that occur in tests and helpers
	scripts         map[string]bool     // files that the entrypoint runs, if its exit code decides
	gold            map[string]bool     // files that the gold patch changes
	helpers         map[string]bool     // top directories and modules that only tests import
	exitsEarly      bool                // a file has code that ends the interpreter without running its exit handlers
	possibleHelpers map[string]bool     // top directories and modules that may be helpers or program
}

var (
	testName      = regexp.MustCompile(`^(test_.*|.*_tests?|tests?|conftest)\.py$`)
	testDir       = regexp.MustCompile(`^(tests?|unittests?|specs?|.*_tests)$`)
	helperName    = regexp.MustCompile(`(?i)(^|_)(tests?|testing|testutils?|helpers?|asserts?|assertions|fixtures?|checks?|checkers?)(_|$)`)
	checkName     = regexp.MustCompile(`(?m)^\s*(?:async )?def (?:_*(?:check|assert|verify|expect|compare|same|equal|match)\w*|\w+_(?:equals?|matches))\s*\(`)
	asserts       = regexp.MustCompile(`(?m)^\s*assert\b|\bAssertionError\b|\bself\.(?:assert|fail)\w*\(`)
	importsTests  = regexp.MustCompile(`(?m)^\s*(?:from|import)\s+(?:pytest|unittest|nose|hypothesis|doctest)\b`)
	importLine    = regexp.MustCompile(`(?m)^[ \t]*(?:from[ \t]+([.\w]+)[ \t]+import[ \t]*(\([^)]*\)|[^\n#;]+)|import[ \t]+([^\n#;]+))`)
	reads         = regexp.MustCompile(`\b(open|read_text|read_bytes|Path|listdir|scandir|glob|join|get_data|files|read_csv|loadtxt)\(`)
	literal       = regexp.MustCompile(`"([^"\n\\]{1,200})"|'([^'\n\\]{1,200})'`)
	dotted        = regexp.MustCompile(`^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$`)
	leavesEarly   = regexp.MustCompile(`\b(_exit|exec[lv]p?e?|abort|kill)\b`)
	metadataFiles = []string{"pyproject.toml", "setup.cfg", "setup.py", "MANIFEST.in"}
)

// newRepoLayout classifies the files of a tree. listed are test files whose names may not say so,
// scripts are the files that the entrypoint runs if its exit code decides, and gold are the files that
// the gold patch changes.
func newRepoLayout(files []string, text textFunc, listed, scripts, gold []string) *repoLayout {
	r := &repoLayout{texts: map[string]string{}, imports: map[string][]string{}, tests: toSet(listed), scripts: toSet(scripts), gold: toSet(gold),
		testDirs: map[string]bool{}, used: map[string]bool{}, programWords: map[string]bool{}, testWords: map[string]bool{},
		helpers: map[string]bool{}, possibleHelpers: map[string]bool{}}
	for _, f := range files {
		if readByLayout(f) {
			r.texts[f] = text(f)
		}
		r.tests[f] = r.tests[f] || r.scripts[f] || testName.MatchString(path.Base(f))
		for dir := path.Dir(f); r.tests[f] && dir != "."; dir = path.Dir(dir) {
			r.testDirs[dir] = r.testDirs[dir] || testDir.MatchString(path.Base(dir))
		}
	}
	for f := range r.texts {
		r.imports[f] = r.importedFiles(f)
	}
	r.classify()
	for f, text := range r.texts {
		forTests := r.belongsToTests(f)
		r.exitsEarly = r.exitsEarly || leavesEarly.MatchString(text)
		words, all := r.programWords, forTests || reads.MatchString(text) // once per file, which may have many literals
		if forTests {
			words = r.testWords
		}
		for _, m := range literal.FindAllStringSubmatch(text, -1) {
			parts := strings.Split(m[1]+m[2], "/")
			for _, part := range parts {
				words[part] = words[part] || all || len(parts) > 1 || strings.Contains(part, ".")
			}
		}
		for _, other := range r.imports[f] {
			r.used[other] = r.used[other] || !forTests && !slices.Contains(metadataFiles, f)
		}
	}
	maps.DeleteFunc(r.texts, func(f string, _ string) bool { return !r.scripts[f] && !slices.Contains(metadataFiles, f) })
	maps.DeleteFunc(r.imports, func(f string, _ []string) bool { return !r.scripts[f] })
	return r
}

func toSet(names []string) map[string]bool {
	out := map[string]bool{}
	for _, name := range names {
		out[name] = true
	}
	return out
}

// readByLayout reports whether newRepoLayout reads the text of a file.
func readByLayout(file string) bool {
	return strings.HasSuffix(file, ".py") || slices.Contains(metadataFiles, file)
}

func (r *repoLayout) helperModules() []string {
	var out []string
	for name := range r.helpers {
		out = append(out, strings.TrimSuffix(name, ".py"))
	}
	return out
}

// top returns the first part of a path: a directory or module at the top of the tree.
func top(file string) string {
	first, _, _ := strings.Cut(file, "/")
	return first
}

// inTestDir reports whether a file is below one of testDirs.
func (r *repoLayout) inTestDir(file string) bool {
	for dir := path.Dir(file); dir != "."; dir = path.Dir(dir) {
		if r.testDirs[dir] {
			return true
		}
	}
	return false
}

// belongsToTests reports whether a file is a test, a helper of tests, or in a directory of tests.
func (r *repoLayout) belongsToTests(file string) bool {
	return r.tests[file] || r.inTestDir(file) || r.helpers[top(file)]
}

// importedFiles returns the files of the repository that a Python file imports, or whose module names
// occur in its strings.
func (r *repoLayout) importedFiles(file string) []string {
	var names []string
	for _, m := range importLine.FindAllStringSubmatch(r.texts[file], -1) {
		if m[3] != "" {
			for part := range strings.SplitSeq(m[3], ",") {
				name, _, _ := strings.Cut(strings.TrimSpace(part), " ")
				names = append(names, name)
			}
			continue
		}
		from := m[1]
		if dots := len(from) - len(strings.TrimLeft(from, ".")); dots > 0 {
			dir := path.Dir(file)
			for range dots - 1 {
				dir = path.Dir(dir)
			}
			from = strings.Trim(strings.ReplaceAll(strings.TrimPrefix(dir, "."), "/", ".")+"."+from[dots:], ".")
		}
		names = append(names, from)
		for part := range strings.SplitSeq(strings.Trim(m[2], "() \t\n"), ",") {
			name, _, _ := strings.Cut(strings.TrimSpace(part), " ")
			names = append(names, strings.Trim(from+"."+name, "."))
		}
	}
	for _, m := range literal.FindAllStringSubmatch(r.texts[file], -1) {
		if dotted.MatchString(m[1] + m[2]) {
			names = append(names, m[1]+m[2])
		}
	}
	var out []string
	for _, name := range names {
		out = append(out, r.moduleFiles(name, path.Dir(file))...)
	}
	return out
}

// moduleFiles returns the files that a module name may refer to in a file of dir.
func (r *repoLayout) moduleFiles(name, dir string) []string {
	roots := []string{"src", "lib", "python"}
	for ; ; dir = path.Dir(dir) {
		roots = append(roots, dir)
		if dir == "." {
			break
		}
	}
	var out []string
	for _, root := range roots {
		base := path.Join(root, strings.ReplaceAll(name, ".", "/"))
		for _, f := range []string{base + ".py", base + "/__init__.py"} {
			if _, ok := r.texts[f]; ok {
				out = append(out, f)
			}
		}
	}
	return out
}

// classify sets helpers and possibleHelpers. It classifies whole directories and modules at the top of
// the tree.
func (r *repoLayout) classify() {
	parts := map[string][]string{} // top -> its Python files
	for f := range r.texts {
		if strings.HasSuffix(f, ".py") && !r.tests[f] && !r.inTestDir(f) {
			parts[top(f)] = append(parts[top(f)], f)
		}
	}
	users := map[string]map[string]bool{} // top -> other tops that import it, apart from tests
	importedByTests := map[string]bool{}
	for f, list := range r.imports {
		for _, other := range list {
			switch {
			case r.tests[f] || r.inTestDir(f):
				importedByTests[top(other)] = true
			case top(f) != top(other):
				if users[top(other)] == nil {
					users[top(other)] = map[string]bool{}
				}
				users[top(other)][top(f)] = true
			}
		}
	}
	hasFix := func(name string) bool {
		return slices.ContainsFunc(parts[name], func(f string) bool { return r.gold[f] })
	}
	// The gold patch shows where the program is.
	programKnown := slices.ContainsFunc(slices.Collect(maps.Keys(parts)), func(name string) bool { return hasFix(name) && !r.lookLikeHelpers(parts[name]) })
	for again := true; again; { // repeat, because a part that only helpers import is also a helper
		again = false
		for name := range parts {
			outside := false
			for user := range users[name] {
				outside = outside || !r.helpers[user]
			}
			switch {
			case r.helpers[name]:
			case outside || hasFix(name) || r.isInstalled(name) || !importedByTests[name] && len(users[name]) == 0:
			case r.lookLikeHelpers(parts[name]) || programKnown && !slices.ContainsFunc(parts[name], func(f string) bool { return r.usesProgram(f, name) }):
				r.helpers[name], again = true, true
			default:
				r.possibleHelpers[name] = programKnown
			}
		}
	}
	if !slices.ContainsFunc(slices.Collect(maps.Keys(parts)), func(name string) bool { return !r.helpers[name] && (importedByTests[name] || len(users[name]) > 0) }) {
		clear(r.helpers) // otherwise no imported part would be left as the program
	}
}

// isInstalled reports whether a top directory or module belongs to the distribution: it is the source
// directory, or one of metadataFiles names it.
func (r *repoLayout) isInstalled(name string) bool {
	if name == "src" || name == "lib" {
		return true
	}
	word := regexp.MustCompile(`(^|[^\w-])` + regexp.QuoteMeta(strings.TrimSuffix(name, ".py")) + `($|[^\w-])`)
	return slices.ContainsFunc(metadataFiles, func(f string) bool { return word.MatchString(r.texts[f]) })
}

// lookLikeHelpers reports whether the files of a top directory or module look like helpers of tests,
// judging by their name, their imports, and functions that check or assert.
func (r *repoLayout) lookLikeHelpers(files []string) bool {
	name := strings.TrimSuffix(top(files[0]), ".py")
	for f := range r.tests { // a module that has tests is part of the program
		if base := path.Base(f); base == "test_"+name+".py" || base == name+"_test.py" {
			return false
		}
	}
	for _, f := range files {
		text := r.texts[f]
		if importsTests.MatchString(text) || checkName.MatchString(text) && asserts.MatchString(text) {
			return true
		}
	}
	return helperName.MatchString(name)
}

// usesProgram reports whether a file imports a file of the repository outside its top directory.
func (r *repoLayout) usesProgram(file, topDir string) bool {
	return slices.ContainsFunc(r.imports[file], func(other string) bool { return top(other) != topDir })
}

// protects reports whether a file always comes from the base tree.
func (r *repoLayout) protects(file string) bool {
	switch {
	case r.gold[file]:
		return false
	case r.scripts[file]:
		return r.isCheckScript(file)
	case !strings.HasSuffix(file, ".py"):
		return r.isTestData(file)
	}
	return r.helpers[top(file)] || r.inTestDir(file) && !r.used[file]
}

// isCheckScript reports whether a script whose exit code decides checks a program in other files, and
// is not the program itself.
func (r *repoLayout) isCheckScript(script string) bool {
	if r.used[script] || len(r.imports[script]) == 0 {
		return false
	}
	text := r.texts[script]
	return len(r.gold) > 0 || asserts.MatchString(text) || importsTests.MatchString(text) || checkName.MatchString(text) ||
		testName.MatchString(path.Base(script)) || helperName.MatchString(strings.TrimSuffix(path.Base(script), ".py"))
}

// isTestData reports whether a file without Python code belongs to the tests: it is in a directory of
// tests, or a part of its path occurs in tests but no part occurs in the program.
func (r *repoLayout) isTestData(file string) bool {
	dir := path.Dir(file)
	if dir == "." || top(file) == "docs" || top(file) == "doc" || r.isInstalled(top(file)) && !r.inTestDir(file) {
		return false
	}
	parts := strings.Split(file, "/")
	if r.inTestDir(file) {
		return true
	}
	if slices.ContainsFunc(parts, func(p string) bool { return r.programWords[p] }) {
		return false
	}
	return slices.ContainsFunc(parts, func(p string) bool { return r.testWords[p] })
}

// doubtReason says why a file that counts as part of the program may belong to the tests, "" if this is
// clear.
func (r *repoLayout) doubtReason(file string) string {
	switch {
	case r.gold[file] || r.protects(file):
		return ""
	case r.scripts[file]:
		return "the entrypoint runs " + file + ", but it may be the program"
	case strings.HasSuffix(file, ".py"):
		if r.possibleHelpers[top(file)] {
			return "only tests import " + file + ", but it may be part of the program"
		}
		if r.inTestDir(file) {
			return file + " is in a directory of tests, but the program imports it"
		}
	case r.testWords[path.Base(file)]:
		return "tests name " + file + ", but it may be part of the program"
	}
	return ""
}
