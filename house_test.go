// Package house checks the rules of the repository: who may import whom, how long files and
// functions are, and that the pages and the Makefile name what exists.
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

// homes names the only packages that may import a heavy dependency.
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

// groups hold implementations: only wire may import them (and they themselves).
var groups = []string{
	"env/drivers", "env/tasks/sources", "tools/builtin", "tools/mcp", "agents/policies", "llms/providers",
	"sinks/stores", "sinks/views",
}

// stdlibOnly import nothing but the standard library.
var stdlibOnly = []string{"schemas"}

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

func under(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

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
						t.Errorf("%s imports %s: only %v may", here, imp, allowed)
					}
				}
			}
		}
	}
	for dep := range homes {
		if !seen[dep] {
			t.Errorf("nothing imports %s: the rule checks nothing", dep)
		}
	}
}

// A program that executes a template of the standard library keeps all methods of all its types,
// because a template may call any of them: 19 MB. See docs/decisions/binary-size.md.
func TestNoTemplatesOfTheStandardLibrary(t *testing.T) {
	for _, p := range packages(t) {
		for _, imp := range p.Imports {
			if imp == "text/template" || imp == "html/template" {
				t.Errorf("%s imports %s: use github.com/DataDog/datadog-agent/pkg/template/text", strings.TrimPrefix(p.ImportPath, module), imp)
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
			if !within(dep, groups) {
				continue
			}
			if under(here, wire) {
				found++
			} else if !within(here, groups) {
				t.Errorf("%s imports %s: only %s may import implementations", here, dep, wire)
			}
		}
	}
	if found < len(groups) {
		t.Errorf("wire imports %d implementation packages, want at least %d", found, len(groups))
	}
}

// product are the programs that users install.
var product = []string{"./cmd/tracesmith", "./cmd/tracesmith-guest"}

// The product contains neither test suites nor experiments.
func TestTheProductImportsNoTestsAndNoLab(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", append([]string{"list", "-deps"}, product...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	for dep := range strings.FieldsSeq(string(out)) {
		if here, ours := strings.CutPrefix(dep, module); ours && within(here, []string{"internal", "cmd/internal/lab", "cmd/internal/chaos"}) {
			t.Errorf("the product imports %s", here)
		}
	}
	for _, p := range packages(t) {
		here := strings.TrimPrefix(p.ImportPath, module)
		for _, imp := range p.Imports {
			if dep := strings.TrimPrefix(imp, module); dep != imp && under(dep, "internal") && !within(here, []string{"internal", "cmd/internal/lab", "cmd/internal/chaos"}) {
				t.Errorf("%s imports %s: only tests and the lab may", here, dep)
			}
		}
	}
}

func TestPlainDataStaysPlain(t *testing.T) {
	for _, p := range packages(t) {
		here := strings.TrimPrefix(p.ImportPath, module)
		for _, imp := range p.Imports {
			if within(here, stdlibOnly) && !under(here, "schemas/arrowrec") && strings.Contains(imp, ".") {
				t.Errorf("%s imports %s: it may use the standard library only", here, imp)
			}
		}
	}
}

// Files stay under 400 lines and functions under 80, generated code apart.
func TestFilesAndFunctionsStayShort(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "git", "ls-files", "*.go").Output()
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
			continue // removed, not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(src, []byte("\n")); n > 400 {
			t.Errorf("%s has %d lines: split it by responsibility", name, n)
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
