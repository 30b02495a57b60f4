package verify

import (
	"context"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/workspace"
	"github.com/tracesmith/tracesmith/schemas"
)

// Layers of defense against cheating, outermost first:
//  1. Tests, their configuration and the entrypoint's scripts come from the base tree. Changes
//     of the patch to them are undone (protect.go).
//  2. A patch is refused if it adds or changes a file that the interpreter or the runner loads
//     automatically (refusals).
//  3. Results are records with a MAC. They are complete only if each interpreter ran its exit
//     handlers (channel.go). A test passes only if the test function was called and returned,
//     even if a report says that it passed (python/tracesmith_channel.py).
//  4. The runner's functions, hooks and tests are compared with their state before program code
//     ran, and assertions that must fail are checked to fail (python/tracesmith_guard.py).
//  5. The use of the interpreter's internals (object graph, trace functions, ctypes, the
//     channel's files) by a file that the patch changed counts as tampering (findIntrusion).

// runnerModules are modules of test runners. A patch may neither add nor change them.
var runnerModules = strings.Fields("pytest _pytest pluggy unittest py site sitecustomize usercustomize iniconfig exceptiongroup tomli coverage")

// runnerPackage maps a method to the package that only the runner's own repository contains.
var runnerPackage = map[string]string{schemas.VerifyPytest: "_pytest", schemas.VerifyUnittest: "unittest"}

// findOwnRunner returns the directory of the test runner if the repository is that of the runner
// itself, and "" otherwise. Such a repository can only be tested with its own runner, which a patch
// can change.
func findOwnRunner(ctx context.Context, store *workspace.Store, t schemas.Task, tree env.Tree) (string, error) {
	name := runnerPackage[t.Tests.Method]
	if name == "" {
		return "", nil
	}
	base, err := store.Base(ctx, tree)
	if err != nil {
		return "", err
	}
	files, err := store.Files(ctx, base)
	for _, f := range files {
		if dir, ok := strings.CutSuffix(f.Path, name+"/__init__.py"); ok && slices.Contains([]string{"", "src/", "lib/", "Lib/"}, dir) {
			return dir + name, err
		}
	}
	return "", err
}

// loadedEarly are modules that a Python test runner loads before program code runs. If a patch added
// a module with the same name, the runner would load it instead.
var loadedEarly = strings.Fields(`__future__ _abc _ast _bisect _blake2 _bz2 _codecs _collections _collections_abc
_compat_pickle _compression _csv _ctypes _datetime _decimal _elementtree _functools _hashlib _heapq _io _json _locale
_lzma _opcode _operator _posixsubprocess _py_abc _pydecimal _queue _random _sha512 _signal _sitebuiltins _socket _sre
_stat _string _strptime _struct _thread _threading_local _typing _uuid _warnings _weakref _weakrefset abc argparse array
ast asyncio atexit attr attrs base64 bdb binascii bisect builtins bz2 calendar certifi cmd code codecs codeop collections
colorama concurrent configparser contextlib contextvars copy copyreg csv ctypes dataclasses datetime decimal difflib dis
doctest email encodings enum errno execnet faulthandler fcntl fnmatch fractions functools gc genericpath getpass gettext
glob gzip hashlib heapq hmac html http importlib importlib_metadata inspect io ipaddress itertools json keyword linecache
locale logging lzma marshal math mimetypes ntpath numbers opcode operator os packaging pathlib pdb pickle pickletools
pkg_resources pkgutil platform posix posixpath pprint profile pwd pyexpat pygments queue quopri random re readline
reprlib resource runpy secrets select selectors setuptools shlex shutil signal socket sre_compile sre_constants sre_parse
ssl stat statistics string stringprep struct subprocess sys sysconfig tarfile tempfile termios textwrap threading time
timeit token tokenize tomllib toml trace traceback tracemalloc types typing typing_extensions unicodedata urllib uu uuid
warnings weakref xml xmlrpc zipfile zipimport zipp zlib zoneinfo`)

// refusal is a file that a patch must not contain. why continues a sentence that begins with path.
type refusal struct{ path, why string }

// refusals returns the files of a patch that the interpreter or the test runner would load
// automatically. The caller has already restored the protected files.
func refusals(changes []workspace.Change, final []workspace.File, before, after textFunc, helpers []string) []refusal {
	present := map[string]bool{}
	for _, f := range final {
		present[f.Path] = true
	}
	var out []refusal
	for _, c := range changes {
		why := refusalReason(c, present, before, after)
		if module := topLevelModule(c, present); why == "" && c.Status == "A" && slices.Contains(helpers, module) {
			why = "shadows the module " + module + ", which the tests import"
		}
		if why != "" {
			out = append(out, refusal{c.Path, why})
		}
	}
	return out
}

// refusalReason says why a patch must not contain a change, "" if it may.
func refusalReason(c workspace.Change, present map[string]bool, before, after textFunc) string {
	base := path.Base(c.Path)
	switch base {
	case "conftest.py":
		return "configures the test runner"
	case "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml":
		return "configures the test runner"
	case "tox.ini", "setup.cfg", "pyproject.toml":
		if pytestSettings(before(c.Path)) != pytestSettings(after(c.Path)) {
			return "changes the settings of the test runner"
		}
	}
	if c.Status == "D" {
		return ""
	}
	switch {
	case base == ".pdbrc":
		return "is run by the debugger"
	case base == "entry_points.txt" && strings.Contains(after(c.Path), "pytest11"):
		return "registers a plugin of the test runner"
	case c.NewMode == workspace.ModeSymlink && slices.Contains(settingsFiles, base):
		return "replaces a settings file with a symbolic link"
	case slices.Contains([]string{".pyc", ".pyo", ".so", ".pyd"}, path.Ext(base)):
		return "is compiled code without its source"
	case strings.HasSuffix(base, ".pth"), strings.HasSuffix(base, "._pth"):
		return "is run by the interpreter at start-up"
	}
	return shadowReason(c, present)
}

// shadowReason says which module of the runner would be shadowed by a file, "" if none.
func shadowReason(c workspace.Change, present map[string]bool) string {
	switch module := topLevelModule(c, present); {
	case module == "sitecustomize", module == "usercustomize":
		return "is run by the interpreter at start-up"
	case slices.Contains(runnerModules, module):
		return "shadows the module " + module + " of the test runner"
	case c.Status != "M" && slices.Contains(loadedEarly, module):
		return "shadows the module " + module + ", which the test runner uses"
	}
	return ""
}

// topLevelModule returns the name by which a file can be imported as a top-level module, "" if it cannot. Such a file
// is at the top of the tree or in a directory without __init__.py, because only such directories are in the module
// path.
func topLevelModule(c workspace.Change, present map[string]bool) string {
	dir, name := path.Split(c.Path)
	dir = strings.TrimSuffix(dir, "/")
	module, ext, _ := strings.Cut(name, ".")
	if module == "__init__" && dir != "" {
		dir, module = path.Split(dir)
		dir = strings.TrimSuffix(dir, "/")
	}
	importable := strings.HasSuffix(ext, "py") || strings.HasSuffix(ext, "pyc") || strings.HasSuffix(ext, "so") ||
		strings.HasSuffix(ext, "pyd") || c.NewMode == workspace.ModeSymlink
	if !importable || dir != "" && (present[dir+"/__init__.py"] || present[dir+"/__init__.pyc"]) {
		return ""
	}
	return module
}

// settingsFiles configure the runner or add plugins to it.
var settingsFiles = []string{"tox.ini", "setup.cfg", "pyproject.toml", "entry_points.txt"}

// tomlEscape matches a numeric escape of TOML.
var tomlEscape = regexp.MustCompile(`\\u([0-9a-fA-F]{4})|\\U([0-9a-fA-F]{8})`)

// pytestSettings returns the lines of an INI or TOML file that configure pytest.
func pytestSettings(text string) string {
	text = tomlEscape.ReplaceAllStringFunc(text, func(s string) string {
		n, _ := strconv.ParseUint(s[2:], 16, 32)
		return string(rune(n))
	})
	var out strings.Builder
	inside := false
	for line := range strings.Lines(text) {
		if head := strings.TrimSpace(line); strings.HasPrefix(head, "[") {
			inside = strings.Contains(head, "pytest")
		}
		if inside || strings.Contains(line, "pytest") {
			out.WriteString(line)
		}
	}
	return out.String()
}

// findIntrusion describes the first watched event of a run for which the patch is responsible, "" if
// there is none. The patch is responsible for events of code without a file. It is responsible for
// events of a file that it changed, unless the old text of the file already contains the name of the
// event. A report while changed code is on the stack always counts.
func findIntrusion(events [][2]string, changes []workspace.Change, before textFunc) string {
	for _, e := range events {
		event, file := e[0], e[1]
		if strings.HasPrefix(file, "<") {
			return event + " was used by code without a file (" + file + ")"
		}
		touched := slices.ContainsFunc(changes, func(c workspace.Change) bool { return c.Path == file })
		word := event[strings.LastIndexByte(event, '.')+1:]
		if strings.HasPrefix(event, "ctypes.") {
			word = "ctypes"
		}
		switch {
		case touched && event == "report":
			return "results were reported by " + file + ", which the patch changed"
		case touched && event == "channel":
			return "the file of test results was used by " + file + ", which the patch changed"
		case touched && !strings.Contains(before(file), word):
			return event + " was used by " + file + ", which the patch changed"
		}
	}
	return ""
}
