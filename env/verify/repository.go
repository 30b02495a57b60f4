package verify

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// content returns the text of a file in one tree, "" if it does not exist there.
type content func(file string) string

// repository says what the files of a base tree are for: which Python files are tests, which are
// helpers that only tests import, and which are the program. It judges by the texts and runs
// nothing. A file counts as part of the program unless the texts clearly say otherwise.
type repository struct {
	texts           map[string]string   // of Python files and of those that describe the distribution
	tests           map[string]bool     // files that hold tests, and conftest.py
	imports         map[string][]string // file -> files of the repository that it imports
	testDirs        map[string]bool     // directories named after tests that hold some
	used            map[string]bool     // files that program code imports
	words           map[string]bool     // parts of the paths that program files name
	asked           map[string]bool     // parts of the paths that tests and helpers name
	scripts         map[string]bool     // files that the entrypoint runs, if its exit code decides
	gold            map[string]bool     // files that the gold patch changes
	helpers         map[string]bool     // top directories and modules that only tests import
	leaves          bool                // a file ends its interpreter without the exit handlers
	possibleHelpers map[string]bool     // as helpers, if the texts do not make it clear
}

var (
	testName     = regexp.MustCompile(`^(test_.*|.*_tests?|tests?|conftest)\.py$`)
	testDir      = regexp.MustCompile(`^(tests?|unittests?|specs?|.*_tests)$`)
	helperName   = regexp.MustCompile(`(?i)(^|_)(tests?|testing|testutils?|helpers?|asserts?|assertions|fixtures?|checks?|checkers?)(_|$)`)
	checkName    = regexp.MustCompile(`(?m)^\s*(?:async )?def (?:_*(?:check|assert|verify|expect|compare|same|equal|match)\w*|\w+_(?:equals?|matches))\s*\(`)
	asserts      = regexp.MustCompile(`(?m)^\s*assert\b|\bAssertionError\b|\bself\.(?:assert|fail)\w*\(`)
	importsTests = regexp.MustCompile(`(?m)^\s*(?:from|import)\s+(?:pytest|unittest|nose|hypothesis|doctest)\b`)
	importLine   = regexp.MustCompile(`(?m)^[ \t]*(?:from[ \t]+([.\w]+)[ \t]+import[ \t]*(\([^)]*\)|[^\n#;]+)|import[ \t]+([^\n#;]+))`)
	reads        = regexp.MustCompile(`\b(open|read_text|read_bytes|Path|listdir|scandir|glob|join|get_data|files|read_csv|loadtxt)\(`)
	literal      = regexp.MustCompile(`"([^"\n\\]{1,200})"|'([^'\n\\]{1,200})'`)
	dotted       = regexp.MustCompile(`^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$`)
	leavesEarly  = regexp.MustCompile(`\b(_exit|exec[lv]p?e?|abort|kill)\b`)
	described    = []string{"pyproject.toml", "setup.cfg", "setup.py", "MANIFEST.in"}
)

// newRepository reads a tree. listed are files with tests, whatever their names; scripts are
// checks by their exit code; gold are the files that the gold patch changes.
func newRepository(files []string, text content, listed, scripts, gold []string) *repository {
	r := &repository{texts: map[string]string{}, imports: map[string][]string{}, tests: set(listed), scripts: set(scripts), gold: set(gold),
		testDirs: map[string]bool{}, used: map[string]bool{}, words: map[string]bool{}, asked: map[string]bool{},
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
		r.imports[f] = r.imported(f)
	}
	r.classify()
	for f, text := range r.texts {
		forTests := r.belongsToTests(f)
		r.leaves = r.leaves || leavesEarly.MatchString(text)
		into, all := r.words, forTests || reads.MatchString(text) // once a file: a table has thousands of literals
		if forTests {
			into = r.asked
		}
		for _, m := range literal.FindAllStringSubmatch(text, -1) {
			parts := strings.Split(m[1]+m[2], "/")
			for _, part := range parts {
				into[part] = into[part] || all || len(parts) > 1 || strings.Contains(part, ".")
			}
		}
		for _, other := range r.imports[f] {
			r.used[other] = r.used[other] || !forTests && !slices.Contains(described, f)
		}
	}
	maps.DeleteFunc(r.texts, func(f string, _ string) bool { return !r.scripts[f] && !slices.Contains(described, f) })
	maps.DeleteFunc(r.imports, func(f string, _ []string) bool { return !r.scripts[f] })
	return r
}

func set(names []string) map[string]bool {
	out := map[string]bool{}
	for _, name := range names {
		out[name] = true
	}
	return out
}

// readByLayout reports whether newRepository reads the text of a file.
func readByLayout(file string) bool {
	return strings.HasSuffix(file, ".py") || slices.Contains(described, file)
}

// helperModules are the names by which tests import helpers.
func (r *repository) helperModules() []string {
	var out []string
	for name := range r.helpers {
		out = append(out, strings.TrimSuffix(name, ".py"))
	}
	return out
}

// top is the directory or module at the top of the tree that a file belongs to.
func top(file string) string {
	first, _, _ := strings.Cut(file, "/")
	return first
}

// inTestDir reports whether a file is below a directory that is named after tests and contains
// some.
func (r *repository) inTestDir(file string) bool {
	for dir := path.Dir(file); dir != "."; dir = path.Dir(dir) {
		if r.testDirs[dir] {
			return true
		}
	}
	return false
}

// belongsToTests reports whether a file is a test, a helper of tests, or in a directory of tests.
func (r *repository) belongsToTests(file string) bool {
	return r.tests[file] || r.inTestDir(file) || r.helpers[top(file)]
}

// imported lists the files of the repository that a Python file imports or names as a module in
// a string.
func (r *repository) imported(file string) []string {
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
		out = append(out, r.module(name, path.Dir(file))...)
	}
	return out
}

// module finds the files of a module, as seen from a directory.
func (r *repository) module(name, dir string) []string {
	places := []string{"src", "lib", "python"}
	for ; ; dir = path.Dir(dir) {
		places = append(places, dir)
		if dir == "." {
			break
		}
	}
	var out []string
	for _, place := range places {
		base := path.Join(place, strings.ReplaceAll(name, ".", "/"))
		for _, f := range []string{base + ".py", base + "/__init__.py"} {
			if _, here := r.texts[f]; here {
				out = append(out, f)
			}
		}
	}
	return out
}

// classify finds the helpers among the directories and modules at the top of the tree.
func (r *repository) classify() {
	parts := map[string][]string{} // top -> its Python files
	for f := range r.texts {
		if strings.HasSuffix(f, ".py") && !r.tests[f] && !r.inTestDir(f) {
			parts[top(f)] = append(parts[top(f)], f)
		}
	}
	users := map[string]map[string]bool{} // top -> tops of program files that import it
	byTests := map[string]bool{}
	for f, list := range r.imports {
		for _, other := range list {
			switch {
			case r.tests[f] || r.inTestDir(f):
				byTests[top(other)] = true
			case top(f) != top(other):
				if users[top(other)] == nil {
					users[top(other)] = map[string]bool{}
				}
				users[top(other)][top(f)] = true
			}
		}
	}
	fixed := func(name string) bool {
		return slices.ContainsFunc(parts[name], func(f string) bool { return r.gold[f] })
	}
	known := slices.ContainsFunc(slices.Collect(maps.Keys(parts)), func(name string) bool { return fixed(name) && !r.forTests(parts[name]) })
	program := 0
	for again := true; again; { // a helper of helpers is a helper
		again, program = false, 0
		for name := range parts {
			outside := false
			for user := range users[name] {
				outside = outside || !r.helpers[user]
			}
			switch {
			case r.helpers[name]:
			case outside || fixed(name) || r.distributed(name) || !byTests[name] && len(users[name]) == 0:
				program++
			case r.forTests(parts[name]) || known && !slices.ContainsFunc(parts[name], func(f string) bool { return r.usesProgram(f, name) }):
				r.helpers[name], again = true, true
			default:
				r.possibleHelpers[name] = known
				program++
			}
		}
	}
	if !slices.ContainsFunc(slices.Collect(maps.Keys(parts)), func(name string) bool { return !r.helpers[name] && (byTests[name] || len(users[name]) > 0) }) {
		clear(r.helpers) // without them there would be no program
	}
}

// distributed reports whether a top directory or module is installed: it is the source
// directory, or the description of the distribution names it.
func (r *repository) distributed(name string) bool {
	if name == "src" || name == "lib" {
		return true
	}
	word := regexp.MustCompile(`(^|[^\w-])` + regexp.QuoteMeta(strings.TrimSuffix(name, ".py")) + `($|[^\w-])`)
	return slices.ContainsFunc(described, func(f string) bool { return word.MatchString(r.texts[f]) })
}

// forTests reports whether files are made for tests, judging by their name, their imports, and
// functions that check and assert.
func (r *repository) forTests(files []string) bool {
	name := strings.TrimSuffix(top(files[0]), ".py")
	for f := range r.tests { // a module with tests of its own is part of the program
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

// usesProgram reports whether a file imports something outside its own top directory.
func (r *repository) usesProgram(file, own string) bool {
	return slices.ContainsFunc(r.imports[file], func(other string) bool { return top(other) != own })
}

// protects reports whether a file always comes from the base tree.
func (r *repository) protects(file string) bool {
	switch {
	case r.gold[file]:
		return false
	case r.scripts[file]:
		return r.checks(file)
	case !strings.HasSuffix(file, ".py"):
		return r.data(file)
	}
	return r.helpers[top(file)] || r.inTestDir(file) && !r.used[file]
}

// checks reports whether a script whose exit code decides checks a program in other files, and is
// not the program itself.
func (r *repository) checks(script string) bool {
	if r.used[script] || len(r.imports[script]) == 0 {
		return false
	}
	text := r.texts[script]
	return len(r.gold) > 0 || asserts.MatchString(text) || importsTests.MatchString(text) || checkName.MatchString(text) ||
		testName.MatchString(path.Base(script)) || helperName.MatchString(strings.TrimSuffix(path.Base(script), ".py"))
}

// data reports whether a file without Python code belongs to the tests: it is in a directory of
// tests, or tests name it or its directory and the program does not.
func (r *repository) data(file string) bool {
	dir := path.Dir(file)
	if dir == "." || top(file) == "docs" || top(file) == "doc" || r.distributed(top(file)) && !r.inTestDir(file) {
		return false
	}
	parts := strings.Split(file, "/")
	if r.inTestDir(file) {
		return true
	}
	if slices.ContainsFunc(parts, func(p string) bool { return r.words[p] }) {
		return false
	}
	return slices.ContainsFunc(parts, func(p string) bool { return r.asked[p] })
}

// doubt says why a file that counts as part of the program may belong to the tests; "" if there
// is no doubt.
func (r *repository) doubt(file string) string {
	switch {
	case r.gold[file] || r.protects(file):
		return ""
	case r.scripts[file]:
		return "the entrypoint runs " + file + ", but it may be the program"
	case strings.HasSuffix(file, ".py"):
		if r.possibleHelpers[top(file)] {
			return "only tests import " + file + ", but it may be the program's"
		}
		if r.inTestDir(file) {
			return file + " lies among the tests, but the program imports it"
		}
	case r.asked[path.Base(file)]:
		return "tests name " + file + ", but it may be the program's"
	}
	return ""
}
