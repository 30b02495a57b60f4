// Package house checks the rules of the repository: which packages may import which, how long files
// and functions may be, and that the documentation and the Makefile refer to things that exist.
package house

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const module = "github.com/tracesmith/tracesmith/"

type pkg struct {
	ImportPath   string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

// homes maps each heavy dependency to the only packages that may import it.
var homes = map[string][]string{
	"github.com/spf13/viper":            {"configs"},
	"github.com/apache/arrow/go":        {"schemas/arrowrec", "sinks/formats"},
	"github.com/aws/":                   {"sinks/stores"},
	"github.com/docker/docker":          {"env/drivers/docker"},
	"github.com/creack/pty":             {"env/guest"},
	"github.com/containerd/ttrpc":       {"env/guest"},
	"github.com/sashabaranov/go-openai": {"llms/providers"},
	"github.com/anthropics/":            {"llms/providers"},
	"github.com/tiktoken-go/":           {"llms/tokens"},
	"github.com/nats-io/":               {"pipeline/engine", "internal/enginetest"},
	"github.com/spf13/cobra":            {"cmd/internal/cli", "cmd/internal/lab"},
	"golang.org/x/term":                 {"cmd/internal/wire"},
	"cel.dev/":                          {"pipeline/selection"},
	"mvdan.cc/sh":                       {"env/shellwords"},

	"github.com/modelcontextprotocol/go-sdk": {"tools/mcp", "cmd/internal/cli"},
	"k8s.io/":                                {"env/drivers/kubernetes", "internal/kubetest"},
}

// implementations are packages that only wire may import, and other packages in this list.
var implementations = []string{
	"env/drivers", "env/tasks/sources", "tools/builtin", "tools/mcp", "agents/policies", "agents/oracle", "llms/providers",
	"sinks/stores", "sinks/views",
}

// stdlibOnly are packages that may import only the standard library.
var stdlibOnly = []string{"schemas"}

// packages lists the packages of the repository with their imports.
func packages(t *testing.T) []pkg {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports,TestImports,XTestImports", "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	var all []pkg
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// under reports whether path is dir or below it.
func under(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

// within reports whether path is one of dirs or below one.
func within(path string, dirs []string) bool {
	for _, d := range dirs {
		if under(path, d) {
			return true
		}
	}
	return false
}

func TestHeavyDependenciesHaveOneHome(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range packages(t) {
		here := strings.TrimPrefix(p.ImportPath, module)
		for _, imp := range p.Imports {
			for dep, allowed := range homes {
				if strings.HasPrefix(imp, dep) {
					seen[dep] = true
					if !within(here, allowed) {
						t.Errorf("%s imports %s: only %v may import it", here, imp, allowed)
					}
				}
			}
		}
	}
	for dep := range homes {
		if !seen[dep] {
			t.Errorf("no package imports %s: remove it from homes", dep)
		}
	}
}

// No package uses templates of the standard library: because a template may call any method, the
// linker would keep all methods of all types, which adds 19 MB. See docs/decisions/binary-size.md.
func TestNoTemplatesOfTheStandardLibrary(t *testing.T) {
	for _, p := range packages(t) {
		for _, imp := range p.Imports {
			if imp == "text/template" || imp == "html/template" {
				t.Errorf("%s imports %s: use github.com/DataDog/datadog-agent/pkg/template/text", strings.TrimPrefix(p.ImportPath, module), imp)
			}
		}
	}
}

// The auditor reads published rows only: not even indirectly does it import what decides or knows the fix.
func TestAuditorImportsNoPolicy(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "./pipeline/audit/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for dep := range strings.Lines(string(out)) {
		dep = strings.TrimPrefix(strings.TrimSpace(dep), module)
		if within(dep, []string{"agents/policies", "agents/prompts", "env/trace", "env/mutate", "pipeline/synth", "pipeline/normalise"}) || dep == "agents" {
			t.Errorf("pipeline/audit imports %s", dep)
		}
	}
}

// The half of the oracle that writes texts, and the baseline, know neither the fix nor the paired trace.
func TestOracleWritesBlindly(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "./agents/oracle/write", "./agents/oracle/baseline").Output()
	if err != nil {
		t.Fatal(err)
	}
	for dep := range strings.Lines(string(out)) {
		if dep = strings.TrimPrefix(strings.TrimSpace(dep), module); within(dep, []string{"agents/oracle/choose", "env/trace"}) {
			t.Errorf("agents/oracle/write or agents/oracle/baseline imports %s", dep)
		}
	}
	files, err := filepath.Glob("agents/oracle/[wb]*/*.go")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"PairedTrace", "TracePoint", "Privileged", "GoldPatch"} {
			if strings.Contains(string(source), name) {
				t.Errorf("%s mentions %s", file, name)
			}
		}
	}
}

func TestOnlyWireImportsImplementations(t *testing.T) {
	wire := "cmd/internal/wire"
	found := 0
	for _, p := range packages(t) {
		here := strings.TrimPrefix(p.ImportPath, module)
		for _, imp := range p.Imports {
			dep := strings.TrimPrefix(imp, module)
			if !within(dep, implementations) {
				continue
			}
			if under(here, wire) {
				found++
			} else if !within(here, implementations) {
				t.Errorf("%s imports %s: only %s may import implementations", here, dep, wire)
			}
		}
	}
	if found < len(implementations) {
		t.Errorf("wire imports %d implementation packages, want at least %d", found, len(implementations))
	}
}

// product lists the programs that users install.
var product = []string{"./cmd/tracesmith", "./cmd/tracesmith-guest"}

// The product contains neither test suites nor experiments.
func TestProductImportsNoTestsAndNoLab(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", append([]string{"list", "-deps"}, product...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	for dep := range strings.FieldsSeq(string(out)) {
		if here, own := strings.CutPrefix(dep, module); own && within(here, []string{"internal", "cmd/internal/lab", "cmd/internal/chaos"}) {
			t.Errorf("the product imports %s", here)
		}
	}
	for _, p := range packages(t) {
		here := strings.TrimPrefix(p.ImportPath, module)
		for _, imp := range p.Imports {
			if dep := strings.TrimPrefix(imp, module); dep != imp && under(dep, "internal") && !within(here, []string{"internal", "cmd/internal/lab", "cmd/internal/chaos"}) {
				t.Errorf("%s imports %s: only tests and the lab may import it", here, dep)
			}
		}
	}
}

// Packages of plain data import only the standard library.
func TestPlainDataImportsOnlyTheStandardLibrary(t *testing.T) {
	for _, p := range packages(t) {
		here := strings.TrimPrefix(p.ImportPath, module)
		for _, imp := range p.Imports {
			if within(here, stdlibOnly) && !under(here, "schemas/arrowrec") && strings.Contains(imp, ".") {
				t.Errorf("%s imports %s: it may use the standard library only", here, imp)
			}
		}
	}
}

// Go and Python files have at most 400 lines, and Go functions at most 80, except generated code.
func TestFilesAndFunctionsStayShort(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "git", "ls-files", "--cached", "--others", "--exclude-standard", "*.go", "*.py").Output()
	if err != nil {
		t.Fatal(err)
	}
	files := strings.Fields(string(out))
	if len(files) < 100 {
		t.Fatalf("only %d files found", len(files))
	}
	for _, name := range files {
		if strings.HasSuffix(name, ".pb.go") {
			continue
		}
		src, err := os.ReadFile(name)
		if errors.Is(err, os.ErrNotExist) {
			continue // deleted, but not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(src, []byte("\n")); n > 400 {
			t.Errorf("%s has %d lines: split it by responsibility", name, n)
		}
		if strings.HasSuffix(name, ".py") {
			continue
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, name, src, 0)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, d := range parsed.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				if n := set.Position(fn.End()).Line - set.Position(fn.Pos()).Line + 1; n > 80 {
					t.Errorf("%s: %s has %d lines", name, fn.Name.Name, n)
				}
			}
		}
	}
}
