"""Detects program code that manipulates the test runner.

Before program code runs, the guard remembers the functions and classes that decide about
a test, with their code and defaults. It compares them at every report and at the end. If
the interpreter has audit hooks (Python 3.8 and later), the guard also records events that
inspect or change a running interpreter, with the file that caused them. The verifier
decides whether the patch is responsible.
"""
import builtins
import os
import sys
import types

# Builtins that can decide about an assertion. Others, such as open, input and print, are not
# in the list, because tests may have good reasons to replace them.
BUILTINS = set(
    "isinstance issubclass bool len any all repr getattr hasattr setattr id hash type object iter next "
    "compile exec eval __build_class__ __import__ super property staticmethod classmethod zip map filter sorted min max "
    "sum abs round tuple list dict set frozenset str bytes int float range enumerate callable vars".split()
)

WATCHED = {
    "sys.settrace", "sys.setprofile", "sys._current_frames", "sys.addaudithook", "sys.monitoring.register_callback",
    "gc.get_objects", "gc.get_referrers", "gc.get_referents",
    "ctypes.dlopen", "ctypes.dlsym", "ctypes.addressof", "ctypes.string_at", "ctypes.cdata", "ctypes.PyObj_FromPtr",
}
FILES = {"open", "os.remove", "os.rename", "os.truncate", "os.chmod"}


def plain_function(value):
    """Returns the plain function inside a descriptor, or None."""
    if isinstance(value, types.FunctionType):
        return value
    if isinstance(value, (staticmethod, classmethod)):
        value = value.__func__
    elif isinstance(value, property):
        value = value.fget
    return value if isinstance(value, types.FunctionType) else None


def parts(fn):
    return fn and (fn.__code__, fn.__defaults__, fn.__kwdefaults__)


def changed(entries, written):
    """Returns the snapshots that have become wrong. The audit hook puts a function into written when the program replaces
    a part of it, each time with a new object. Python has no audit hooks before 3.8: written is None there."""
    try:
        out = [e for e in entries if e[3][e[1]] is not e[2]]
    except KeyError:  # one was deleted
        out = [e for e in entries if e[3].get(e[1]) is not e[2]]
    if written is None:
        out += [e for e in entries if e[4] and any(a is not b for a, b in zip(parts(e[4]), e[5]))]
    elif written:
        out += [e for e in entries if written.get(e[4]) is not e[5]]
    return out


KINDS = (types.FunctionType, types.BuiltinFunctionType, type, staticmethod, classmethod, property)


def describe(owner, name):
    if isinstance(owner, types.ModuleType):
        return "%s.%s" % (owner.__name__, name)
    return "%s.%s.%s" % (owner.__module__, owner.__qualname__, name)


def make_workspace_path(workdir, cwd):
    """Returns a function that maps the file name of a frame to its path relative to the
    workspace. It returns None for a file outside the workspace, and the name itself for code
    without a file ("<string>")."""
    known, root = {}, workdir.rstrip("/") + "/"

    def workspace_path(file):
        if file not in known:
            known[file] = locate(file)
        return known[file]

    def locate(file):
        if file[:1] == "<":
            return None if file.startswith("<frozen") else file
        parts = []
        for part in (file if file[:1] == "/" else cwd + "/" + file).split("/"):
            if part == "..":
                del parts[-1:]
            elif part not in ("", "."):
                parts.append(part)
        full = "/" + "/".join(parts)
        return full[len(root):] if full.startswith(root) else None

    return workspace_path


class Guard(object):
    def __init__(self, workdir, directory, workspace_path):
        self.workdir = os.path.realpath(workdir) + os.sep
        self._workspace_path = workspace_path
        self.tell = None  # set by the channel; writes findings at once, so that the program cannot remove them
        self._always = []  # entries compared at every check
        self._full = []  # entries compared at full checks only
        self._known = set()
        self._modules = []  # (name, module) of remembered modules
        self._checks = []
        self._real = {}  # see real
        self._functions = set()  # in snapshots
        self._written = {} if hasattr(sys, "addaudithook") else None  # see changed
        decisive = [(n, v) for n, v in vars(builtins).items() if n in BUILTINS or isinstance(v, type) and issubclass(v, BaseException)]
        self._always.extend(self._snapshots(builtins, decisive))
        self._audit(os.path.realpath(directory))

    def remember(self, always, full=()):
        """Remembers all functions and classes of the named packages, as far as they are loaded. Those of
        always are compared at every check, those of full only at full checks."""
        for into, prefixes in ((self._always, always), (self._full, full)):
            prefixes = tuple([p + "." for p in prefixes])
            for name in sorted([n for n in sys.modules if (n + ".").startswith(prefixes) and n not in self._known]):
                module = sys.modules[name]
                if not isinstance(module, types.ModuleType):
                    continue
                self._known.add(name)
                self._modules.append((name, module))
                file = getattr(module, "__file__", None)
                if file and self.inside(file):
                    self.add_finding("%s was loaded from the workspace (%s)" % (name, self.relative(file)))
                found = self._snapshots(module, list(vars(module).items()))
                into.extend(found)
                for e in found:
                    if isinstance(e[2], type) and e[2].__module__ == module.__name__:
                        into.extend(self._snapshots(e[2], list(vars(e[2]).items())))

    def _snapshots(self, owner, items):
        """Returns the functions and classes among the attributes of a module or class, with what tells whether parts
        of the functions are replaced later, for changed."""
        space, written = owner.__dict__, self._written
        found = [(name, value, plain_function(value)) for name, value in items if isinstance(value, KINDS)]
        self._functions.update([fn for _, _, fn in found if fn is not None])
        return [(owner, name, value, space, fn, parts(fn) if written is None else written.get(fn)) for name, value, fn in found]

    def watch(self, check):
        """Adds a function to call at every check. It returns a finding or None."""
        self._checks.append(check)

    def add_finding(self, what):
        if self.tell:
            self.tell("note", "found", what)

    def note_event(self, event, where):
        if self.tell:
            self.tell("note", "seen", [event, where])

    def check(self, everything=True):
        for entries in (self._always, self._full) if everything else (self._always,):
            for e in changed(entries, self._written):
                self.add_finding("%s was replaced" % describe(e[0], e[1]))
        for name, module in self._modules:
            if sys.modules.get(name) is not module:
                self.add_finding("the module %s was replaced" % name)
        for check in self._checks:
            what = check()
            if what:
                self.add_finding(what)

    def accept_replacements(self):
        """Accepts what installed plugins (code outside the workspace) have replaced while
        pytest configured them."""
        for into in (self._always, self._full):
            for e in changed(into, self._written):
                value = e[3].get(e[1])
                fn = plain_function(value)
                if fn is not None and not self.inside(fn.__code__.co_filename) and fn.__code__.co_filename[:1] != "<":
                    into[into.index(e)] = self._snapshots(e[0], [(e[1], value)])[0]

    def import_hook_files(self):
        """Returns the files of the import hooks that belong to the program."""
        out = set()
        for finder in sys.meta_path + sys.path_hooks:
            for place in (finder, type(finder)):
                for fn in [plain_function(v) for v in list(vars(place).values())] if hasattr(place, "__dict__") else []:
                    if fn is not None:
                        out.add(fn.__code__.co_filename)
            if plain_function(finder) is not None:
                out.add(finder.__code__.co_filename)
        return self.program_files(out)

    def program_files(self, files):
        """Returns the files that belong to the program, and the names of code without a file."""
        files = (f for f in files if not f.startswith("<frozen"))
        return {f if f[:1] == "<" else self.relative(f) for f in files if f[:1] == "<" or self.inside(f)}

    def release(self):
        """Stops full checks, because the runner changes its own functions when it ends."""
        self._full = []

    def real(self, path):
        """Returns os.path.realpath(path), but resolves each directory only once. A program that replaces a directory
        later gains nothing by that, because it could also copy its files to a place outside the workspace."""
        head, _, name = path.rpartition("/") if type(path) is str else ("", "", "")
        if head[:1] != "/" or name in ("", ".", "..") or os.path.islink(path):
            return os.path.realpath(path)
        if head not in self._real:
            self._real[head] = os.path.realpath(head)
        return self._real[head] + "/" + name

    def inside(self, path):
        return self.real(path).startswith(self.workdir)

    def relative(self, path):
        path = self.real(path)
        return path[len(self.workdir):] if path.startswith(self.workdir) else path

    def _audit(self, directory):
        if not hasattr(sys, "addaudithook"):
            return
        getframe, note, guard, workspace_path = sys._getframe, self._note, self, self._workspace_path
        functions, written, function = self._functions, self._written, types.FunctionType
        channel_file = "<frozen tracesmith_channel>"

        def caller(event, frame):
            where = frame is not None and workspace_path(frame.f_code.co_filename)
            if where:
                guard.note_event(event, where)

        def setattr_(event, args):
            if type(args[0]) is function and args[0] in functions:  # sets compare other values with their own methods
                written[args[0]] = object()
            if len(args) > 1 and args[1] == "__code__":
                note("__code__", getframe())

        def compile_(event, args):
            if isinstance(args[1], str) and (args[1][:1] != "<" or args[1].startswith("<frozen")):
                caller("compile", getframe().f_back.f_back)

        def import_(event, args):
            if isinstance(args[1], str) and guard.inside(args[1]):  # native code
                guard.note_event("dlopen", guard.relative(args[1]))

        def file(event, args):
            if isinstance(args[0], str) and args[0].endswith("records"):
                frame = getframe().f_back.f_back
                from_channel = frame is not None and frame.f_code.co_filename == channel_file
                if not from_channel and os.path.dirname(os.path.realpath(args[0])) == directory:
                    note("channel", frame)

        # The frame that causes an event is the one outside hook.
        handlers = {
            "object.__setattr__": setattr_, "compile": compile_, "import": import_,
            "code.__new__": lambda event, args: caller("co_", getframe().f_back.f_back),
            "marshal.loads": lambda event, args: guard.check_bytecode(getframe().f_back.f_back),
        }
        handlers.update((event, file) for event in FILES)
        handlers.update((event, lambda event, args: note(event, getframe())) for event in WATCHED)
        find = handlers.get

        def hook(event, args):
            handle = find(event)
            if handle is not None:
                handle(event, args)

        sys.addaudithook(hook)

    def check_bytecode(self, frame):
        """Reports bytecode that is loaded without a source, because it can name any file as its source."""
        inner = frame
        while inner is not None and inner.f_code.co_filename.startswith("<frozen importlib"):
            if inner.f_code.co_name == "_compile_bytecode":
                file = inner.f_locals.get("bytecode_path")
                if file and self.inside(file) and (sys.dont_write_bytecode or not inner.f_locals.get("source_path")):
                    self.add_finding("%s is compiled code without its source" % self.relative(file))
                return
            inner = inner.f_back
        self._note("marshal.loads", frame)

    def _note(self, event, frame):
        """Attributes an event to the innermost frame of the program.

        The program is not responsible for events that a library causes while the program
        imports it. A module of the program would have a frame inside the import.
        """
        while frame is not None:
            if frame.f_code.co_filename.startswith("<frozen importlib"):
                return
            where = self._workspace_path(frame.f_code.co_filename)
            if where:
                self.note_event(event, where)
                return
            frame = frame.f_back
