"""Notices program code that reaches into the test runner.

Before program code runs, the functions and classes that decide about a test are
remembered by identity (with code, defaults); they are compared at every report
and at the end. Where the interpreter has audit hooks (3.8+), a few events that
serve to dig in a running interpreter are noted with the file that caused them;
the verifier judges those against the patch.
"""
import builtins
import os
import sys
import types

# Builtins that decide about an assertion. Others (open, input, print) are left
# out: tests replace them with reason.
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
    """The plain function inside a descriptor, if there is one."""
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
    """Returns what names a file of a program's frame as the workspace does: None
    if it is a library's, its own name if it is no file."""
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
        self.tell = None  # the channel's: writes at once, so that nothing can take it back
        self._often = []
        self._rest = []
        self._known = set()
        self._modules = []  # remembered ones, by name
        self._own_checks = []
        for name, value in vars(builtins).items():
            if name in BUILTINS or (isinstance(value, type) and issubclass(value, BaseException)):
                self._often.append(entry(builtins, name, value))
        self._audit(os.path.realpath(directory))

    def remember(self, often, rest=()):
        """Adds every function and class of the named packages that are loaded."""
        for prefix, into in [(p, self._often) for p in often] + [(p, self._rest) for p in rest]:
            for name, module in sorted(sys.modules.items()):
                if name != prefix and not name.startswith(prefix + "."):
                    continue
                if not isinstance(module, types.ModuleType) or name in self._known:
                    continue
                self._known.add(name)
                self._modules.append((name, module))
                file = getattr(module, "__file__", None)
                if file and self.inside(file):
                    self.find("%s was loaded from the workspace (%s)" % (name, self.relative(file)))
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
        """Adds a check of a runner's own: returns a finding or None."""
        self._own_checks.append(check)

    def find(self, what):
        if self.tell:
            self.tell("note", "found", what)

    def seen(self, event, where):
        if self.tell:
            self.tell("note", "seen", [event, where])

    def check(self, everything=True):
        for e in self._often + self._rest if everything else self._often:
            if changed(e):
                self.find("%s was replaced" % describe(e[0], e[1]))
        for name, module in self._modules:
            if sys.modules.get(name) is not module:
                self.find("the module %s was replaced" % name)
        for check in self._own_checks:
            what = check()
            if what:
                self.find(what)

    def adopt(self):
        """Accepts replacements made by code outside the workspace, while
        installed plugins configure themselves."""
        for into in (self._often, self._rest):
            for i, e in enumerate(into):
                if changed(e):
                    value = e[0].__dict__.get(e[1])
                    fn = core(value)
                    if fn is not None and not self.inside(fn.__code__.co_filename) and fn.__code__.co_filename[:1] != "<":
                        into[i] = entry(e[0], e[1], value)

    def finders(self):
        """Files of the import hooks that are not the interpreter's own."""
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
        """Those of the files that are the program's, or no files."""
        files = (f for f in files if not f.startswith("<frozen"))
        return {f if f[:1] == "<" else self.relative(f) for f in files if f[:1] == "<" or self.inside(f)}

    def release(self):
        """Ends the checks of what a runner takes apart when it is done."""
        self._rest = []

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
                guard.seen(event, where)

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
                    guard.seen("dlopen", guard.relative(args[1]))
            elif event in FILES:
                frame = getframe().f_back
                mine = frame is not None and frame.f_code.co_filename == own
                if not mine and isinstance(args[0], str) and args[0].endswith("records"):
                    if os.path.dirname(os.path.realpath(args[0])) == directory:
                        note("channel", frame)

        sys.addaudithook(hook)

    def bytecode(self, frame):
        """Code without a source names any file it likes as its own."""
        inner = frame
        while inner is not None and inner.f_code.co_filename.startswith("<frozen importlib"):
            if inner.f_code.co_name == "_compile_bytecode":
                file = inner.f_locals.get("bytecode_path")
                if file and self.inside(file) and (sys.dont_write_bytecode or not inner.f_locals.get("source_path")):
                    self.find("%s is code without a source" % self.relative(file))
                return
            inner = inner.f_back
        self._note("marshal.loads", frame)

    def _note(self, event, frame):
        """Attributes an event to the innermost frame that is the program's.

        What a library does while it is imported is its own doing, whoever asked
        for the import: a module of the program would have a frame of its own
        below the importer's.
        """
        while frame is not None:
            if frame.f_code.co_filename.startswith("<frozen importlib"):
                return
            where = self._place(frame.f_code.co_filename)
            if where:
                self.seen(event, where)
                return
            frame = frame.f_back
