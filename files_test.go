package house

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The files of a package form layers: if file A uses a package-level name of file B, then B does
// not use a name of A, directly or through other files.
func TestFilesOfAPackageFormLayers(t *testing.T) {
	checked := 0
	for _, p := range packages(t) {
		dir := strings.TrimPrefix(p.ImportPath, module)
		if !within(dir, []string{"env", "pipeline"}) {
			continue
		}
		uses := fileUses(t, dir)
		checked += len(uses)
		for _, cycle := range cycles(uses) {
			t.Errorf("%s: these files use each other:", dir)
			for _, from := range cycle {
				for _, to := range cycle {
					if names := uses[from][to]; len(names) > 0 {
						t.Errorf("\t%s uses %v of %s", from, names, to)
					}
				}
			}
		}
	}
	if checked < 100 {
		t.Errorf("only %d files were checked", checked)
	}
}

// fileUses lists the package-level names that each file of a package uses of each other file.
func fileUses(t *testing.T, dir string) map[string]map[string][]string {
	t.Helper()
	fset := token.NewFileSet()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	uses := map[string]map[string][]string{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files, uses[filepath.Base(name)] = append(files, f), map[string][]string{}
	}
	// Imported packages are empty here, so their names do not resolve. Only names of this package
	// matter.
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	cfg := types.Config{Importer: emptyPackages{}, Error: func(error) {}}
	pkg, _ := cfg.Check(dir, fset, files, info)
	for ident, obj := range info.Uses {
		if obj.Parent() != pkg.Scope() {
			continue
		}
		from, to := filepath.Base(fset.Position(ident.Pos()).Filename), filepath.Base(fset.Position(obj.Pos()).Filename)
		if from != to && !slices.Contains(uses[from][to], obj.Name()) {
			uses[from][to] = append(uses[from][to], obj.Name())
		}
	}
	return uses
}

// emptyPackages is an importer that returns empty packages.
type emptyPackages struct{}

func (emptyPackages) Import(path string) (*types.Package, error) {
	p := types.NewPackage(path, filepath.Base(path))
	p.MarkComplete()
	return p, nil
}

// cycles lists the groups of files that use each other, directly or through other files.
func cycles(uses map[string]map[string][]string) [][]string {
	reach := map[string]map[string]bool{}
	for from := range uses {
		reach[from] = map[string]bool{}
		for todo := []string{from}; len(todo) > 0; todo = todo[1:] {
			for to := range uses[todo[0]] {
				if !reach[from][to] {
					reach[from][to] = true
					todo = append(todo, to)
				}
			}
		}
	}
	var out [][]string
	for _, from := range slices.Sorted(maps.Keys(reach)) {
		var group []string
		for _, to := range slices.Sorted(maps.Keys(reach)) {
			if reach[from][to] && reach[to][from] {
				group = append(group, to)
			}
		}
		if len(group) > 1 && group[0] == from {
			out = append(out, group)
		}
	}
	return out
}

func TestCyclesAreFound(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.go": "package p\n\nimport \"net/http\"\n\nfunc A(*http.Request) { B() }\n",
		"b.go": "package p\n\nfunc B() { _ = c }\n",
		"c.go": "package p\n\nvar c = A\n",
		"d.go": "package p\n\ntype d struct{ x int }\n\nfunc (d) A() { A(nil) }\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := fmt.Sprint(cycles(fileUses(t, dir))); got != "[[a.go b.go c.go]]" {
		t.Errorf("found %s", got)
	}
}
