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

// Layers against cheating, outermost first:
//  1. Tests, their configuration and the entrypoint's scripts come from the base tree, whatever
//     the patch did to them (protect.go).
//  2. A patch is refused if it adds or changes a file that the interpreter or the runner loads
//     by itself (refusals).
//  3. Results are records with a MAC, complete only if each interpreter ran its exit handlers
//     last (channel.go). A test passes only if its own function was called and returned,
//     whatever was reported (python/tracesmith_channel.py).
//  4. The runner's functions, hooks and tests are compared with their state before program code
//     ran, and assertions known to be wrong must still fail (python/tracesmith_guard.py).
//  5. The use of the interpreter's internals (object graph, trace functions, ctypes, the
//     channel's files) by a file that the patch changed counts as tampering (intrusion).

// runners are modules of test runners. A patch may neither add nor change them.
var runners = strings.Fields("pytest _pytest pluggy unittest py site sitecustomize usercustomize iniconfig exceptiongroup tomli coverage")

// runnerOf is the package that only the repository of the runner itself has.
var runnerOf = map[string]string{schemas.VerifyPytest: "_pytest", schemas.VerifyUnittest: "unittest"}

// ownRunner returns the place of the test runner in a repository that is the test runner itself,
// "" for any other repository. A runner outside of it would test another program.
func ownRunner(ctx context.Context, store *workspace.Store, t schemas.Task, tree env.Tree) (string, error) {
	name := runnerOf[t.Tests.Method]
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

// loadedEarly are modules that a Python test runner loads before program code runs. A new module
// of the same name on the module path would run in their place.
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

// refusal is a file that a patch must not contain, and why.
type refusal struct{ path, why string }

// refusals lists the files of a patch that the interpreter or the test runner loads by itself.
// Protected files have been restored before.
func refusals(changes []workspace.Change, final []workspace.File, before, after content, helpers []string) []refusal {
	present := map[string]bool{}
	for _, f := range final {
		present[f.Path] = true
	}
	var out []refusal
	for _, c := range changes {
		why := refuse(c, present, before, after)
		if module := shadowed(c, present); why == "" && c.Status == "A" && slices.Contains(helpers, module) {
			why = "shadows the module " + module + ", which the tests import"
		}
		if why != "" {
			out = append(out, refusal{c.Path, why})
		}
	}
	return out
}

func refuse(c workspace.Change, present map[string]bool, before, after content) string {
	base := path.Base(c.Path)
	switch base {
	case "conftest.py":
		return "configures the test runner"
	case "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml":
		return "configures the test runner"
	case "tox.ini", "setup.cfg", "pyproject.toml":
		if settings(before(c.Path)) != settings(after(c.Path)) {
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
	return shadows(c, present)
}

// shadows says why a file would be imported in place of a module that the runner uses, "" if it
// would not.
func shadows(c workspace.Change, present map[string]bool) string {
	switch module := shadowed(c, present); {
	case module == "sitecustomize", module == "usercustomize":
		return "is run by the interpreter at start-up"
	case slices.Contains(runners, module):
		return "shadows the module " + module + " of the test runner"
	case c.Status != "M" && slices.Contains(loadedEarly, module):
		return "shadows the module " + module + ", which the test runner uses"
	}
	return ""
}

// shadowed is the top-level module that a file can be imported as: the file is in a directory
// where the module path may begin (the top, or a directory without __init__.py).
func shadowed(c workspace.Change, present map[string]bool) string {
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

// escaped matches a character that TOML writes by its number.
var escaped = regexp.MustCompile(`\\u([0-9a-fA-F]{4})|\\U([0-9a-fA-F]{8})`)

// settings are the lines of an INI or TOML file that configure pytest.
func settings(text string) string {
	text = escaped.ReplaceAllStringFunc(text, func(s string) string {
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

// intrusion returns a watched event of a run that the patch caused, "" if there is none. A file
// that the patch changed caused it, and the file's old text does not contain the event's word,
// or code without a file caused it. A report while changed code was on the stack always counts.
func intrusion(seen [][2]string, changes []workspace.Change, before content) string {
	for _, s := range seen {
		event, file := s[0], s[1]
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
