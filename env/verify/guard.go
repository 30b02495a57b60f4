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
//  1. tests, their configuration and the entrypoint's scripts come from the base
//     tree, whatever the patch did to them (protector);
//  2. a patch that adds or changes a file the interpreter or the runner loads by
//     itself is refused (refusals);
//  3. results are MACed records, complete only if each interpreter ran its exit
//     handlers last (channel.go); a test passes only if its own function was
//     called and came back, whatever was reported (python/tracesmith_channel.py);
//  4. the runner's functions, hooks and tests are compared with what they were
//     before program code ran, and assertions known to be wrong must still fail
//     (python/tracesmith_guard.py);
//  5. digging in the interpreter (object graph, trace functions, ctypes, the
//     channel's files) from a file the patch changed counts as tampering (digs).

// protector answers which paths are graded as the base has them: the task's
// test files, the files its test ids name (doctests excepted, which stand in the
// program), and the scripts its entrypoint runs.
func protector(t schemas.Task, spec schemas.TestSpec, base []workspace.File) func(string) bool {
	exact := map[string]bool{}
	for _, id := range slices.Concat(spec.FailToPass, spec.PassToPass) {
		if file, test, ok := strings.Cut(id, "::"); ok {
			name, _, _ := strings.Cut(test, "[")
			exact[file] = exact[file] || !strings.Contains(name, ".")
			continue
		}
		for dotted := id; dotted != ""; { // unittest: module.Class.test
			dotted = dotted[:max(strings.LastIndexByte(dotted, '.'), 0)]
			exact[strings.ReplaceAll(dotted, ".", "/")+".py"] = true
		}
	}
	modes := map[string]uint32{}
	for _, f := range base {
		modes[f.Path] = f.Mode
	}
	last := ""
	for _, word := range commandWords(t, spec) {
		switch mode := modes[word]; {
		case word == "make":
			exact["Makefile"], exact["makefile"], exact["GNUmakefile"] = true, true, true
		case mode == 0:
		case strings.HasSuffix(word, ".py"):
			// Where the exit code decides it may be the program itself: see repository.
			// pytest is also given files whose docstrings hold the tests.
			run := strings.HasPrefix(path.Base(last), "python")
			exact[word] = exact[word] || spec.Method == schemas.VerifyUnittest || spec.Method == schemas.VerifyPytest && run
		default:
			exact[word] = exact[word] || mode == workspace.ModeExec || strings.HasSuffix(word, ".sh")
		}
		last = word
	}
	return func(file string) bool {
		return exact[file] || slices.ContainsFunc(spec.Files, func(p string) bool { return matches(p, file) })
	}
}

// commandWords are the words of a task's command lines, with paths as the workspace
// has them.
func commandWords(t schemas.Task, spec schemas.TestSpec) []string {
	words := strings.FieldsFunc(t.Entrypoint+" "+spec.Command, func(r rune) bool { return strings.ContainsRune(" \t\n;&|()\"'", r) })
	for i, word := range words {
		words[i] = path.Clean(strings.TrimPrefix(word, t.Workdir+"/"))
	}
	return words
}

// layout reads the base tree of a task for what its tests rest on.
func layout(t schemas.Task, spec schemas.TestSpec, base []workspace.File, text content, gold []string) *repository {
	files := make([]string, len(base))
	for i, f := range base {
		files[i] = f.Path
	}
	var listed, scripts []string
	for _, id := range slices.Concat(spec.FailToPass, spec.PassToPass, sortedKeys(spec.Expected)) {
		file, test, ok := strings.Cut(id, "::")
		if name, _, _ := strings.Cut(test, "["); ok && !strings.Contains(name, ".") && slices.Contains(files, file) {
			listed = append(listed, file)
		}
	}
	last := ""
	for _, word := range commandWords(t, spec) {
		for _, file := range []string{word, strings.ReplaceAll(word, ".", "/") + ".py", strings.ReplaceAll(word, ".", "/") + "/__main__.py"} {
			if spec.Method == schemas.VerifyExitCode && strings.HasSuffix(file, ".py") && slices.Contains(files, file) && (file == word || last == "-m") {
				scripts = append(scripts, file)
			}
		}
		last = word
	}
	return newRepository(files, text, listed, scripts, gold)
}

// A runner itself: never part of a patch, new or old.
var runners = strings.Fields("pytest _pytest pluggy unittest py site sitecustomize usercustomize iniconfig exceptiongroup tomli coverage")

// runnerOf is the package by which a repository is known to be the runner itself.
var runnerOf = map[string]string{schemas.VerifyPytest: "_pytest", schemas.VerifyUnittest: "unittest"}

// ownRunner is where a repository keeps the runner that its tests are judged by;
// "" = it is none. Run from outside, such tests would be about another program.
func (v *Verifier) ownRunner(ctx context.Context, t schemas.Task, tree env.Tree) (string, error) {
	name := runnerOf[t.Tests.Method]
	if name == "" {
		return "", nil
	}
	base, err := v.cfg.Store.Base(ctx, tree)
	if err != nil {
		return "", err
	}
	files, err := v.cfg.Store.Files(ctx, base)
	for _, f := range files {
		if dir, ok := strings.CutSuffix(f.Path, name+"/__init__.py"); ok && slices.Contains([]string{"", "src/", "lib/", "Lib/"}, dir) {
			return dir + name, err
		}
	}
	return "", err
}

// What a Python test runner has loaded before program code runs; a new module
// of such a name on the module path would run in its place.
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

// refusal is a path of the patch that is not allowed to be there.
type refusal struct{ path, why string }

// content reads a file of one side of the patch; "" where it does not exist.
type content func(file string) string

// refusals lists what a patch may not add or change, once protected files are
// back: files that the interpreter or the test runner loads by itself.
func refusals(changes []workspace.Change, final []workspace.File, before, after content, helpers []string) []refusal {
	present := map[string]bool{}
	for _, f := range final {
		present[f.Path] = true
	}
	var out []refusal
	for _, c := range changes {
		why := refuse(c, present, before, after)
		if module := shadowed(c, present); why == "" && c.Status == "A" && slices.Contains(helpers, module) {
			why = "takes the place of the module " + module + ", which the tests import"
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
		return "is a link to settings"
	case slices.Contains([]string{".pyc", ".pyo", ".so", ".pyd"}, path.Ext(base)):
		return "is code without a source"
	case strings.HasSuffix(base, ".pth"), strings.HasSuffix(base, "._pth"):
		return "is run by the interpreter at start-up"
	}
	return shadows(c, present)
}

// shadows says why a file would be imported in the place of a module that the
// runner uses.
func shadows(c workspace.Change, present map[string]bool) string {
	switch module := shadowed(c, present); {
	case module == "sitecustomize", module == "usercustomize":
		return "is run by the interpreter at start-up"
	case slices.Contains(runners, module):
		return "takes the place of the module " + module + " of the test runner"
	case c.Status != "M" && slices.Contains(loadedEarly, module):
		return "takes the place of the module " + module + ", which the test runner uses"
	}
	return ""
}

// shadowed is the name of the top module that a file can be imported as: it lies
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

// What configures the runner, or adds plugins to it, by its name.
var settingsFiles = []string{"tox.ini", "setup.cfg", "pyproject.toml", "entry_points.txt"}

// escaped matches a character TOML lets be written by its number.
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

// digs finds, among the watched events of a run, one that a patch brought in:
// caused by a file it changed whose old text does not have the event's word, or
// by code without a file. A report made while changed code was on the stack is
// one whatever the old text says.
func digs(seen [][2]string, changes []workspace.Change, before content) string {
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
