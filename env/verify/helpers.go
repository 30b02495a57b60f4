package verify

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// repository is what the layout of a base tree says about its Python files: which
// are tests, which are helpers that only tests import, and which are the program.
// It reads texts and runs nothing, so it decides only what they make clear. What
// they leave open counts as the program's.
type repository struct {
	texts    map[string]string   // of Python files and of those that describe the distribution
	tests    map[string]bool     // files that hold tests, and conftest.py
	imports  map[string][]string // file -> files of the repository that it imports
	testDirs map[string]bool     // directories named after tests that hold some
	used     map[string]bool     // files that program code imports
	words    map[string]bool     // parts of the paths that program files name
	asked    map[string]bool     // the same of tests and helpers
	scripts  map[string]bool     // files that the entrypoint runs, where its exit code decides
	gold     map[string]bool     // files that the gold patch changes
	helpers  map[string]bool     // top directories and modules that only tests import
	leaves   bool                // a file leaves its interpreter without the exit handlers
	maybe    map[string]bool     // the same where the texts do not make it clear
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

// newRepository reads a tree. listed are files that hold tests whatever their names
// say, scripts are checks by their exit code, gold is what the gold patch changes.
func newRepository(files []string, text content, listed, scripts, gold []string) *repository {
	r := &repository{texts: map[string]string{}, imports: map[string][]string{}, tests: set(listed), scripts: set(scripts), gold: set(gold),
		testDirs: map[string]bool{}, used: map[string]bool{}, words: map[string]bool{}, asked: map[string]bool{},
		helpers: map[string]bool{}, maybe: map[string]bool{}}
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
		judging := r.judging(f)
		r.leaves = r.leaves || leavesEarly.MatchString(text)
		into, all := r.words, judging || reads.MatchString(text) // once a file: a table has thousands of literals
		if judging {
			into = r.asked
		}
		for _, m := range literal.FindAllStringSubmatch(text, -1) {
			parts := strings.Split(m[1]+m[2], "/")
			for _, part := range parts {
				into[part] = into[part] || all || len(parts) > 1 || strings.Contains(part, ".")
			}
		}
		for _, other := range r.imports[f] {
			r.used[other] = r.used[other] || !judging && !slices.Contains(described, f)
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

// readByLayout says whose texts a repository reads.
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

// inTestDir says that a file lies below a directory that is named after tests and
// holds some.
func (r *repository) inTestDir(file string) bool {
	for dir := path.Dir(file); dir != "."; dir = path.Dir(dir) {
		if r.testDirs[dir] {
			return true
		}
	}
	return false
}

// judging says that a file belongs to the tests: it is one, lies among them, or is
// a helper of theirs.
func (r *repository) judging(file string) bool {
	return r.tests[file] || r.inTestDir(file) || r.helpers[top(file)]
}

// imported lists the files of the repository that a Python file imports, or names
// as a module in a string.
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

// classify finds the helpers among what lies at the top of the tree.
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
	for again := true; again; { // a helper of helpers is one
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
				r.maybe[name] = known
				program++
			}
		}
	}
	if !slices.ContainsFunc(slices.Collect(maps.Keys(parts)), func(name string) bool { return !r.helpers[name] && (byTests[name] || len(users[name]) > 0) }) {
		clear(r.helpers) // they are the whole program
	}
}

// distributed says that a top directory or module is installed: it is the source
// directory, or the description of the distribution names it.
func (r *repository) distributed(name string) bool {
	if name == "src" || name == "lib" {
		return true
	}
	word := regexp.MustCompile(`(^|[^\w-])` + regexp.QuoteMeta(strings.TrimSuffix(name, ".py")) + `($|[^\w-])`)
	return slices.ContainsFunc(described, func(f string) bool { return word.MatchString(r.texts[f]) })
}

// forTests says that files are made for tests: by their name, by what they import,
// or because they define checks that assert.
func (r *repository) forTests(files []string) bool {
	name := strings.TrimSuffix(top(files[0]), ".py")
	for f := range r.tests { // one with tests of its own is what they test
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

// usesProgram says that a file imports something outside its own top directory.
func (r *repository) usesProgram(file, own string) bool {
	return slices.ContainsFunc(r.imports[file], func(other string) bool { return top(other) != own })
}

// protects says that a file is graded as the base has it.
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

// checks says that a script whose exit code decides is a check of a program in other
// files, not the program itself.
func (r *repository) checks(script string) bool {
	if r.used[script] || len(r.imports[script]) == 0 {
		return false
	}
	text := r.texts[script]
	return len(r.gold) > 0 || asserts.MatchString(text) || importsTests.MatchString(text) || checkName.MatchString(text) ||
		testName.MatchString(path.Base(script)) || helperName.MatchString(strings.TrimSuffix(path.Base(script), ".py"))
}

// data says that a file without Python code belongs to the tests: it lies among
// them, or they name it or its directory and the program does not.
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

// doubt says why a file that counts as the program's may be the tests'; "" for
// one that is not in doubt.
func (r *repository) doubt(file string) string {
	switch {
	case r.gold[file] || r.protects(file):
		return ""
	case r.scripts[file]:
		return "the entrypoint runs " + file + ", but it may be the program"
	case strings.HasSuffix(file, ".py"):
		if r.maybe[top(file)] {
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
