package closure

import (
	"os/exec"
	"strings"
	"testing"
)

// listsNames prints the words of standard input that Python's standard library does not define: in a module, in a class, as
// a parameter of a function or as an attribute of some objects.
const listsNames = `
import ast, importlib, logging, subprocess, sys, types, unittest, warnings
warnings.simplefilter("ignore")
modules = """abc argparse array ast asyncio base64 builtins calendar codecs collections collections.abc configparser contextlib copy csv
dataclasses datetime decimal difflib enum fractions functools glob hashlib importlib importlib.abc importlib.machinery importlib.util inspect
io itertools json logging math operator os os.path pathlib pickle random re shutil socket sqlite3 string struct subprocess sys
tempfile textwrap threading time tokenize traceback types typing unittest unittest.mock urllib.parse urllib.request uuid warnings
weakref""".split()
defined = set(modules)
for name in modules:
    module = importlib.import_module(name)
    for word in dir(module):
        defined.add(word)
        value = getattr(module, word)
        defined.update(dir(value) if isinstance(value, type) else ())
        if isinstance(value, types.FunctionType):
            code = value.__code__
            defined.update(code.co_varnames[:code.co_argcount + code.co_kwonlyargcount])
        defined.update(value._fields if isinstance(value, type) and issubclass(value, ast.AST) else ())
for example in subprocess.CompletedProcess([], 0), unittest.TestResult(), logging.Logger(""):
    defined.update(vars(example))
print("\n".join(w for w in sys.stdin.read().split() if w not in defined))
`

// A name in the list is public only because Python defines it. Other versions lack some of the names.
func TestPublicNamesAreThoseOfPython(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "python3.11", "-c", listsNames)
	cmd.Stdin = strings.NewReader(stdlib)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if found := strings.Fields(string(out)); len(found) > 0 {
		t.Errorf("Python does not define %d names: %s", len(found), strings.Join(found, " "))
	}
}
