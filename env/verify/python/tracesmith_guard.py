"""Notices program code that manipulates the test runner.

Before program code runs, the functions and classes that decide about a test are
remembered by identity (with their code and defaults); they are compared at every
report and at the end. If the interpreter has audit hooks (3.8+), a few events that
serve to inspect a running interpreter are noted with the file that caused them; the
verifier decides whether the patch is responsible.
"""
import builtins
import os
import sys
import types

# Builtins that decide about an assertion. Others (open, input, print) are left out,
# because tests replace them legitimately.
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


def core(value):
    """Returns the plain function inside a descriptor, or None."""
    if isinstance(value, (staticmethod, classmethod)):
        value = value.__func__
    elif isinstance(value, property):
        value = value.fget
    return value if isinstance(value, types.FunctionType) else None


def entry(owner, name, value):
    fn = core(value)
    if fn is None:
        return (owner, name, value, None, None, None, None)
    return (owner, name, value, fn, fn.__code__, fn.__defaults__, fn.__kwdefaults__)


def changed(e):
    owner, name, value, fn, code, defaults, kwdefaults = e
    if owner.__dict__.get(name) is not value:
        return True
    return fn is not None and (
        fn.__code__ is not code or fn.__defaults__ is not defaults or fn.__kwdefaults__ is not kwdefaults
    )


KINDS = (types.FunctionType, types.BuiltinFunctionType, type, staticmethod, classmethod, property)


def describe(owner, name):
    if isinstance(owner, types.ModuleType):
        return "%s.%s" % (owner.__name__, name)
    return "%s.%s.%s" % (owner.__module__, owner.__qualname__, name)


def locator(workdir, cwd):
    """Returns a function that maps the file of a frame to its path in the workspace: None for
    a library's file, and the name itself for code without a file ("<string>")."""
    known, root = {}, workdir.rstrip("/") + "/"

    def place(file):
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

    return place


class Guard(object):
    def __init__(self, workdir, directory, place):
        self.workdir = os.path.realpath(workdir) + os.sep
        self._place = place
        self.tell = None  # set by the channel; writes at once, so that nothing can be withdrawn
        self._always = []  # entries compared at every check
        self._full = []  # entries compared at full checks only
        self._known = set()
        self._modules = []  # (name, module) of the remembered ones
        self._own_checks = []
        for name, value in vars(builtins).items():
            if name in BUILTINS or (isinstance(value, type) and issubclass(value, BaseException)):
                self._always.append(entry(builtins, name, value))
        self._audit(os.path.realpath(directory))

    def remember(self, always, full=()):
        """Adds every function and class of the named packages that are loaded."""
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
            into.append(entry(module, name, value))
            if isinstance(value, type) and value.__module__ == module.__name__:
                for attr, member in list(vars(value).items()):
                    if isinstance(member, KINDS):
                        into.append(entry(value, attr, member))

    def watch(self, check):
        """Adds a check; it returns a finding or None."""
        self._own_checks.append(check)

    def add_finding(self, what):
        if self.tell:
            self.tell("note", "found", what)

    def note_event(self, event, where):
        if self.tell:
            self.tell("note", "seen", [event, where])

    def check(self, everything=True):
        for e in self._always + self._full if everything else self._always:
            if changed(e):
                self.add_finding("%s was replaced" % describe(e[0], e[1]))
        for name, module in self._modules:
            if sys.modules.get(name) is not module:
                self.add_finding("the module %s was replaced" % name)
        for check in self._own_checks:
            what = check()
            if what:
                self.add_finding(what)

    def adopt(self):
        """Accepts the replacements that installed plugins (code outside the workspace)
        have made while they configured themselves."""
        for into in (self._always, self._full):
            for i, e in enumerate(into):
                if changed(e):
                    value = e[0].__dict__.get(e[1])
                    fn = core(value)
                    if fn is not None and not self.inside(fn.__code__.co_filename) and fn.__code__.co_filename[:1] != "<":
                        into[i] = entry(e[0], e[1], value)

    def finders(self):
        """Returns the files of the import hooks that belong to the program."""
        out = set()
        for finder in sys.meta_path + sys.path_hooks:
            for place in (finder, type(finder)):
                for fn in [core(v) for v in list(vars(place).values())] if hasattr(place, "__dict__") else []:
                    if fn is not None:
                        out.add(fn.__code__.co_filename)
            if core(finder) is not None:
                out.add(finder.__code__.co_filename)
        return self.own(out)

    def own(self, files):
        """Returns the files that belong to the program, and the names that are no files."""
        files = (f for f in files if not f.startswith("<frozen"))
        return {f if f[:1] == "<" else self.relative(f) for f in files if f[:1] == "<" or self.inside(f)}

    def release(self):
        """Stops checking what a runner takes apart at its end."""
        self._full = []

    def inside(self, path):
        return os.path.realpath(path).startswith(self.workdir)

    def relative(self, path):
        path = os.path.realpath(path)
        return path[len(self.workdir):] if path.startswith(self.workdir) else path

    def _audit(self, directory):
        if not hasattr(sys, "addaudithook"):
            return
        getframe, note, guard, place = sys._getframe, self._note, self, self._place
        own = "<frozen tracesmith_channel>"

        def caller(event, frame):
            where = frame is not None and place(frame.f_code.co_filename)
            if where:
                guard.note_event(event, where)

        def hook(event, args):
            if event in WATCHED:
                note(event, getframe())
            elif event == "object.__setattr__":
                if len(args) > 1 and args[1] == "__code__":
                    note("__code__", getframe())
            elif event == "code.__new__":
                caller("co_", getframe().f_back)
            elif event == "compile":
                if isinstance(args[1], str) and (args[1][:1] != "<" or args[1].startswith("<frozen")):
                    caller("compile", getframe().f_back)
            elif event == "marshal.loads":
                guard.bytecode(getframe().f_back)
            elif event == "import":
                if isinstance(args[1], str) and guard.inside(args[1]):  # native code
                    guard.note_event("dlopen", guard.relative(args[1]))
            elif event in FILES:
                frame = getframe().f_back
                mine = frame is not None and frame.f_code.co_filename == own
                if not mine and isinstance(args[0], str) and args[0].endswith("records"):
                    if os.path.dirname(os.path.realpath(args[0])) == directory:
                        note("channel", frame)

        sys.addaudithook(hook)

    def bytecode(self, frame):
        """Reports bytecode that is loaded without a source: it can claim any file as its own."""
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

        What a library does while it is imported is not attributed to the program that
        imports it: a module of the program would have its own frame inside the import.
        """
        while frame is not None:
            if frame.f_code.co_filename.startswith("<frozen importlib"):
                return
            where = self._place(frame.f_code.co_filename)
            if where:
                self.note_event(event, where)
                return
            frame = frame.f_back
