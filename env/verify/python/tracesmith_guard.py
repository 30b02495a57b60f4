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
    if isinstance(value, (staticmethod, classmethod)):
        value = value.__func__
    elif isinstance(value, property):
        value = value.fget
    return value if isinstance(value, types.FunctionType) else None


def parts(fn):
    return fn.__code__, fn.__defaults__, fn.__kwdefaults__


def state(fn, written):
    """Returns what tells whether parts of a function are replaced later: how often that was done, or the parts."""
    if fn is None:
        return ()
    return parts(fn) if written is None else (written.get(id(fn), (fn, 0))[1],)


def snapshot(owner, name, value, written):
    """Returns the state of an attribute, for changed."""
    fn = plain_function(value)
    return (owner, name, value, owner.__dict__, fn, state(fn, written))


def changed(entries, written):
    """Returns the snapshots that have become wrong. written maps the id of each function whose parts were replaced to the
    function and the number of times, which audit events report. Before Python 3.8, written is None."""
    out = [e for e in entries if e[3].get(e[1]) is not e[2]]
    if written != {}:  # most programs replace nothing
        out += [e for e in entries if any(a is not b for a, b in zip(state(e[4], written), e[5]))]
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
        self._written = {} if hasattr(sys, "addaudithook") else None  # see changed
        for name, value in vars(builtins).items():
            if name in BUILTINS or (isinstance(value, type) and issubclass(value, BaseException)):
                self._always.append(snapshot(builtins, name, value, self._written))
        self._audit(os.path.realpath(directory))

    def remember(self, always, full=()):
        """Remembers all functions and classes of the named packages, as far as they are loaded. Those of
        always are compared at every check, those of full only at full checks."""
        for prefix, into in [(p, self._always) for p in always] + [(p, self._full) for p in full]:
            for name, module in sorted(sys.modules.items()):
                if name != prefix and not name.startswith(prefix + "."):
                    continue
                if not isinstance(module, types.ModuleType) or name in self._known:
                    continue
                self._known.add(name)
                self._modules.append((name, module))
                file = getattr(module, "__file__", None)
                if file and self.inside(file):
                    self.add_finding("%s was loaded from the workspace (%s)" % (name, self.relative(file)))
                self._module(module, into)

    def _module(self, module, into):
        for name, value in list(vars(module).items()):
            if not isinstance(value, KINDS):
                continue
            into.append(snapshot(module, name, value, self._written))
            if isinstance(value, type) and value.__module__ == module.__name__:
                for attr, member in list(vars(value).items()):
                    if isinstance(member, KINDS):
                        into.append(snapshot(value, attr, member, self._written))

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
                    into[into.index(e)] = snapshot(e[0], e[1], value, self._written)

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

    def inside(self, path):
        return os.path.realpath(path).startswith(self.workdir)

    def relative(self, path):
        path = os.path.realpath(path)
        return path[len(self.workdir):] if path.startswith(self.workdir) else path

    def _audit(self, directory):
        if not hasattr(sys, "addaudithook"):
            return
        getframe, note, guard, workspace_path, written = sys._getframe, self._note, self, self._workspace_path, self._written
        channel_file = "<frozen tracesmith_channel>"

        def caller(event, frame):
            where = frame is not None and workspace_path(frame.f_code.co_filename)
            if where:
                guard.note_event(event, where)

        def hook(event, args):
            if event in WATCHED:
                note(event, getframe())
            elif event == "object.__setattr__":
                written[id(args[0])] = args[0], written.get(id(args[0]), (None, 0))[1] + 1
                if len(args) > 1 and args[1] == "__code__":
                    note("__code__", getframe())
            elif event == "code.__new__":
                caller("co_", getframe().f_back)
            elif event == "compile":
                if isinstance(args[1], str) and (args[1][:1] != "<" or args[1].startswith("<frozen")):
                    caller("compile", getframe().f_back)
            elif event == "marshal.loads":
                guard.check_bytecode(getframe().f_back)
            elif event == "import":
                if isinstance(args[1], str) and guard.inside(args[1]):  # native code
                    guard.note_event("dlopen", guard.relative(args[1]))
            elif event in FILES:
                frame = getframe().f_back
                from_channel = frame is not None and frame.f_code.co_filename == channel_file
                if not from_channel and isinstance(args[0], str) and args[0].endswith("records"):
                    if os.path.dirname(os.path.realpath(args[0])) == directory:
                        note("channel", frame)

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
