package cli

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

const repository = "../../.."

// helpText returns what tracesmith prints for these arguments.
func helpText(t *testing.T, args ...string) string {
	t.Helper()
	var out, stderr bytes.Buffer
	s := &State{Args: args, Stdout: &out, Stderr: &stderr}
	if code := Main(t.Context(), s, Tracesmith); code != ExitOK || stderr.Len() > 0 {
		t.Fatalf("%q: exit code %d, %s", args, code, &stderr)
	}
	return out.String()
}

func TestHelpFitsEightyColumns(t *testing.T) {
	calls := [][]string{{"--help"}}
	var add func(c *cobra.Command)
	add = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			calls = append(calls, append([]string{"help"}, strings.Fields(sub.CommandPath())[1:]...))
			add(sub)
		}
	}
	add(Tracesmith(&State{}))
	for _, args := range calls {
		for line := range strings.Lines(helpText(t, args...)) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
				t.Errorf("%q: %d columns: %s", args, n, line)
			}
			if strings.Contains(line, "`") {
				t.Errorf("%q: Markdown in a terminal: %s", args, line)
			}
		}
	}
}

// Each exit code in exit.go has one row in the table, in the order of the codes.
func TestEveryExitCodeIsExplained(t *testing.T) {
	parsed, err := parser.ParseFile(token.NewFileSet(), "exit.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var want []int
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "Exit") {
			return true
		}
		code, err := strconv.Atoi(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, code)
		return true
	})
	var got []int
	for _, row := range exitCodes {
		got = append(got, row.code)
	}
	if len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("the table explains the exit codes %v, but exit.go has %v", got, want)
	}
}

// variableOf maps the expressions that stand for the names of variables in the program to
// the names; "" if the name is not fixed.
var variableOf = map[string]string{
	"client.EnvOverrideHost": "DOCKER_HOST",
	"name":                   "", // a variable that a setting or a test names
}

// The topic names every variable that the program reads by name.
func TestHelpNamesEveryVariable(t *testing.T) {
	topic, seen := helpText(t, "help", "environment"), map[string]bool{}
	check := func(at token.Position, name string) {
		if seen[name] = true; !strings.Contains(topic, name) {
			t.Errorf("%s reads %s, which the topic does not name", at, name)
		}
	}
	set := token.NewFileSet()
	err := filepath.WalkDir(repository, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(repository, path)
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if rel == "internal" || rel == "out" || rel == "runs" || rel == "cmd/internal/lab" || rel == "cmd/internal/chaos" || rel == "cmd/tracesmith-guest" || d.Name() == "testdata" || rel != "." && strings.HasPrefix(d.Name(), ".") {
				return fs.SkipDir
			}
			return nil
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		parsed, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			switch function := expression(call.Fun); {
			case function == "os.UserCacheDir":
				check(set.Position(call.Pos()), "XDG_CACHE_HOME")
			case function == "os.UserHomeDir":
				check(set.Position(call.Pos()), "HOME")
			case function == "os.TempDir" || function == "os.MkdirTemp":
				check(set.Position(call.Pos()), "TMPDIR")
			case function == "http.ProxyFromEnvironment":
				check(set.Position(call.Pos()), "HTTPS_PROXY")
			case function == "os.Getenv" || function == "os.LookupEnv" || strings.HasSuffix(function, ".Getenv"):
				name := expression(call.Args[0])
				if fixed, ok := variableOf[name]; ok {
					name = fixed
				}
				if name != "" {
					check(set.Position(call.Pos()), name)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(seen) < 10 {
		t.Errorf("found only %v", seen)
	}
}

// expression returns a name, a selected name, or the text of a string.
func expression(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return expression(e.X) + "." + e.Sel.Name
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil {
			return text
		}
	}
	return ""
}

func TestShellsCompleteTopics(t *testing.T) {
	var out bytes.Buffer
	s := &State{Args: []string{"__completeNoDesc", "help", "e"}, Stdout: &out, Stderr: &bytes.Buffer{}}
	Main(t.Context(), s, Tracesmith)
	if got := out.String(); got != "env\nenvironment\nexit-codes\nexport\n:4\n" {
		t.Errorf("completed %q", got)
	}
}

func TestSimilarNames(t *testing.T) {
	names := []string{"config", "env", "environment", "exit-codes", "mask", "max-cost", "run", "workers"}
	for _, c := range []struct{ wrong, want string }{
		{"exit-kodes", "exit-codes"}, {"exit", "exit-codes"}, {"EXIT-CODES", "exit-codes"}, {"max-cots", "max-cost"},
		{"work", "workers"}, {"rnu", "run"}, {"envs", "env"}, {"zz", ""}, {"x", ""}, {"", ""}, {"nothing", ""},
	} {
		if got := similar(c.wrong, names); got != c.want {
			t.Errorf("%q: %q, want %q", c.wrong, got, c.want)
		}
	}
}
