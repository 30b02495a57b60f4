package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// suite is one call of go test in the Makefile.
type suite struct {
	set      string // what stands before it: the switches
	packages []string
	run      []*regexp.Regexp // of -run, by its slashes; none: every test
}

// has tells whether the suite runs a test, or a subtest, of the package in dir.
func (s suite) has(dir string, name ...string) bool {
	here := false
	for _, p := range s.packages {
		p = filepath.Clean(strings.TrimPrefix(p, "./"))
		here = here || p == dir || strings.HasSuffix(p, "/...") && under(dir, strings.TrimSuffix(p, "/..."))
	}
	for i := range min(len(name), len(s.run)) {
		here = here && s.run[i].MatchString(name[i])
	}
	return here
}

func suites(t *testing.T) []suite {
	t.Helper()
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	text := string(makefile)
	for _, m := range regexp.MustCompile(`(?m)^(\w+) := (.*)$`).FindAllStringSubmatch(text, -1) {
		text = strings.ReplaceAll(text, "$("+m[1]+")", m[2])
	}
	var all []suite
	for line := range strings.Lines(strings.ReplaceAll(text, "$$", "$")) {
		before := ""
		for i, call := range strings.Split(line, "$(call gotest,") {
			if i == 0 {
				before = call
				continue
			}
			packages, flags, _ := strings.Cut(call, ",")
			s := suite{set: before, packages: strings.Fields(packages)}
			if m := regexp.MustCompile(`-run '([^']+)'`).FindStringSubmatch(flags); m != nil {
				for part := range strings.SplitSeq(m[1], "/") {
					s.run = append(s.run, regexp.MustCompile(part))
				}
			}
			all = append(all, s)
		}
	}
	if len(all) < 15 {
		t.Fatalf("the Makefile has %d calls of go test, want at least 15", len(all))
	}
	return all
}

// switches are what turns tests on, or changes what they do.
var switches = []string{"DOCKER", "FACTORY", "SOAK", "CLUSTER", "VERSITYGW", "MINIO", "ATIF", "PYTHONS"}

// conditions of scripts, and the switch of each.
var conditions = map[string]string{"docker": "DOCKER", "factory": "FACTORY", "soak": "SOAK", "s3-server": "VERSITYGW"}

// A suite that a switch turns on runs every test that looks at the switch, itself
// or through the functions it calls.
func TestEverySwitchedTestIsInASuite(t *testing.T) {
	functions := parseFunctions(t)
	all := suites(t)
	for _, name := range switches {
		variable := "TRACESMITH_TEST_" + name
		found := 0
		for at := range functions.reading(variable) {
			if !strings.HasPrefix(at.name, "Test") || at.name == "TestMain" {
				continue
			}
			found++
			held := false
			for _, s := range all {
				held = held || strings.Contains(s.set, variable+"=") && s.has(at.dir, at.name)
			}
			if !held {
				t.Errorf("%s: no target that sets %s runs %s", at.dir, variable, at.name)
			}
		}
		if found == 0 {
			t.Errorf("no test looks at %s: the rule checks nothing", variable)
		}
	}
}

// The same of scripts.
func TestEverySwitchedScriptIsInASuite(t *testing.T) {
	const dir = "cmd/tracesmith"
	scripts, err := filepath.Glob(dir + "/testdata/script/*.txtar")
	if err != nil || len(scripts) == 0 {
		t.Fatal(len(scripts), err)
	}
	all := suites(t)
	found := 0
	for _, file := range scripts {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for condition, name := range conditions {
			if !regexp.MustCompile(`(?m)^\[!?` + condition + `\] `).Match(text) {
				continue
			}
			found++
			held := false
			for _, s := range all {
				held = held || strings.Contains(s.set, "TRACESMITH_TEST_"+name+"=") &&
					s.has(dir, "TestScripts", strings.TrimSuffix(filepath.Base(file), ".txtar"))
			}
			if !held {
				t.Errorf("no target that sets TRACESMITH_TEST_%s runs %s", name, file)
			}
		}
	}
	if found < 8 {
		t.Errorf("%d scripts depend on switches, want 8 at least", found)
	}
}

// No file of tests is left out of the build of make test.
func TestMakeTestBuildsEveryTest(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "git", "grep", "--untracked", "-hE", `^//go:build `, "--", "*_test.go").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		if line != "//go:build !race\n" {
			t.Errorf("a test file with the condition %q, under which make test does not build it", line)
		}
	}
}

// The targets that .ci/run makes run a test in its short form; make full makes them
// all and runs each test in its long form.
func TestMakeFullRunsTheLongForms(t *testing.T) {
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`(?m)^gotest = .* \$\(if \$\(FULL\),,-short\) `).Match(makefile) {
		t.Error("gotest of the Makefile does not pass -short, or passes it with FULL=1")
	}
	full := regexp.MustCompile(`(?m)^\t\$\(MAKE\) FULL=1 (.*)$`).FindSubmatch(makefile)
	if full == nil {
		t.Fatal("make full makes nothing with FULL=1")
	}
	made := strings.Fields(string(full[1]))
	for _, target := range append(targetsOfCI(t), "s3-second") {
		if !slices.Contains(made, target) {
			t.Errorf("make full does not make %s", target)
		}
	}
}

// place is a function or a variable of this module; methods go by their names alone.
type place struct{ dir, name string }

// functions has what each mentions: texts of its own, and others of the module.
type functions map[place]struct {
	texts []string
	calls []place
}

func parseFunctions(t *testing.T) functions {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", "ls-files", "--cached", "--others", "--exclude-standard", "*.go").Output()
	if err != nil {
		t.Fatal(err)
	}
	all := functions{}
	for _, file := range strings.Fields(string(out)) {
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		imports := map[string]string{}
		for _, i := range tree.Imports {
			if dir, ours := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), module); ours && i.Name == nil {
				imports[filepath.Base(dir)] = dir
			}
		}
		for _, d := range tree.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				all.add(place{filepath.Dir(file), d.Name.Name}, d, imports)
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if v, ok := spec.(*ast.ValueSpec); ok && v.Names[0].Name != "_" {
						all.add(place{filepath.Dir(file), v.Names[0].Name}, v, imports)
					}
				}
			}
		}
	}
	return all
}

func (all functions) add(here place, of ast.Node, imports map[string]string) {
	m := all[here]
	ast.Inspect(of, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			m.texts = append(m.texts, n.Value)
		case *ast.Ident:
			m.calls = append(m.calls, place{here.dir, n.Name})
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && imports[x.Name] != "" {
				m.calls = append(m.calls, place{imports[x.Name], n.Sel.Name})
			}
		}
		return true
	})
	all[here] = m
}

// reading are the functions that ask for a variable, and those that call one.
func (all functions) reading(variable string) map[place]bool {
	found := map[place]bool{}
	for at, f := range all {
		for _, text := range f.texts {
			found[at] = found[at] || text == `"`+variable+`"`
		}
		if !found[at] {
			delete(found, at)
		}
	}
	for grown := true; grown; {
		grown = false
		for at, f := range all {
			for _, called := range f.calls {
				if found[called] && !found[at] {
					found[at], grown = true, true
				}
			}
		}
	}
	return found
}
