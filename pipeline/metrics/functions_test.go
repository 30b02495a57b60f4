package metrics

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestFunctions(t *testing.T) {
	want := []Function{{Name: "Cart.__init__", First: 5, Last: 6}, {Name: "Cart.add", First: 8, Last: 9}, {Name: "Cart.total", First: 11, Last: 15}, {Name: "tax", First: 18, Last: 19}}
	if diff := cmp.Diff(want, Functions(cart), cmpopts.IgnoreUnexported(Function{})); diff != "" {
		t.Error(diff)
	}
	const odd = "@wraps(f)\n# why\n@other\nasync def outer(a=\"(\",\n          b=1):\n    '''doc\ndef no(): pass\n'''\n    def inner(): return 1\n\n    # end\n    return \\\n        inner\n# after\nclass A(B): x = 1\n"
	want = []Function{{Name: "outer", First: 1, Last: 13}, {Name: "outer.inner", First: 9, Last: 9}}
	if diff := cmp.Diff(want, Functions(odd), cmpopts.IgnoreUnexported(Function{})); diff != "" {
		t.Error(diff)
	}
}

// astFunctions prints what Python's own parser finds.
const astFunctions = `
import ast, json, sys
out = {}
for path in sys.argv[1:]:
    found = []
    def walk(node, names):
        for child in ast.iter_child_nodes(node):
            inner = names
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                inner = names + [child.name]
                if not isinstance(child, ast.ClassDef):
                    first = min([child.lineno] + [d.lineno for d in child.decorator_list])
                    found.append([".".join(inner), first, child.end_lineno])
            walk(child, inner)
    walk(ast.parse(open(path, encoding="utf-8").read()), [])
    out[path] = sorted(found, key=lambda f: (f[1], -f[2]))
print(json.dumps(out))
`

// Functions agrees with Python's parser about files of the standard library.
func TestFunctionsAgreeWithPython(t *testing.T) {
	raw, err := exec.CommandContext(t.Context(), "python3", "-c", "import os; print(os.__file__)").Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(strings.TrimSpace(string(raw)))
	var paths []string
	for _, name := range []string{"argparse", "ast", "bdb", "pdb", "dataclasses", "inspect", "tarfile", "textwrap", "typing", "unittest/mock", "asyncio/base_events", "functools", "enum"} {
		paths = append(paths, filepath.Join(dir, name+".py"))
	}
	raw, err = exec.CommandContext(t.Context(), "python3", append([]string{"-c", astFunctions}, paths...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	var want map[string][][3]any
	if err := json.Unmarshal(raw, &want); err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, p := range paths {
		source, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		got := [][3]any{}
		for _, f := range Functions(string(source)) {
			got = append(got, [3]any{f.Name, float64(f.First), float64(f.Last)})
		}
		total += len(got)
		if diff := cmp.Diff(want[p], got); diff != "" {
			t.Errorf("%s: %s", filepath.Base(p), diff)
		}
	}
	if total < 1000 {
		t.Errorf("only %d functions were compared", total)
	}
}
