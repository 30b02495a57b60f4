# Starting and ending the program.
#
# The command line is python -u -c BOOTSTRAP WORKSPACE {-m MODULE | -c CODE | SCRIPT} ARG... Standard input
# contains the source of this module and then one line of configuration.
import _imp
import builtins
import importlib.util
import linecache
import os
import pdb
import re
import runpy
import signal
import sys
import threading
import traceback
import types
import zipfile


def delegate(shim):
    """Returns the class that the program gets as pdb.Pdb. Its methods call those of shim."""

    class Delegate(Base):
        def __init__(self, *_, **__):
            Base.__init__(self, stdin=EmptyInput(), stdout=shim.stdout, nosigint=True, readrc=False)

        def set_trace(self, frame=None, **_):
            shim.set_trace(frame or sys._getframe().f_back)

        def runcall(self, function, *args, **named):
            shim.set_trace()
            return function(*args, **named)

        def run(self, code, names=None, inner=None, how=exec):
            names = vars(sys.modules["__main__"]) if names is None else names
            return self.runcall(how, code, names, names if inner is None else inner)

        def runeval(self, expression, names=None, inner=None):
            return self.run(expression, names, inner, eval)

        def interaction(self, frame, tb, *_):
            shim.event, shim.caught = "exception", frame is None
            try:
                shim.interaction(frame, tb)
            finally:
                shim.caught = False
            if MONITORING and shim.stepping():
                shim.trace()

    return Delegate


def unload_shadowed():
    """Removes modules that the debugger imported from sys.modules if the program has a module with the same name."""
    front = [p or "." for p in (sys.path[:sys.path.index(LIB)] if LIB in sys.path else [])]
    names = {file.split(".")[0] for folder in front if os.path.isdir(folder) for file in os.listdir(folder)}
    # Functions of bdb and linecache import linecache, reprlib and tokenize, so these three stay.
    for name in names & set(sys.modules) - LOADED - set(sys.builtin_module_names) - {"linecache", "reprlib", "tokenize"}:
        spec = None if _imp.is_frozen(name) else importlib.machinery.PathFinder.find_spec(name, front)
        if spec is not None and spec.has_location:
            for module in list(sys.modules):
                if module.split(".")[0] == name:
                    del sys.modules[module]


def load_main(argv):
    """Returns the code and the global names of the main module. Sets sys.argv and sys.path."""
    sys.path[:] = PATH
    linecache.cache.pop("<string>", None)  # 3.13 caches the text after -c, which is the debugger's
    getattr(linecache, "_interactive_cache", {}).clear()  # 3.14
    names = {"__name__": "__main__", "__doc__": None, "__package__": None, "__spec__": None,
             "__loader__": None, "__builtins__": builtins, "__annotations__": {}}
    if argv[0] == "-m":
        sys.argv[:] = ["-m"] + argv[2:]
        if sys.path[:1] == [""]:
            sys.path[0] = os.getcwd()
        unload_shadowed()
        _, spec, code = runpy._get_module_details(argv[1])
        sys.argv[0] = spec.origin
        names.update(__file__=spec.origin, __cached__=spec.cached, __loader__=spec.loader,
                     __package__=spec.parent, __spec__=spec)
        return code, names
    if argv[0] == "-c":
        sys.argv[:] = ["-c"] + argv[2:]
        unload_shadowed()
        linecache.cache["<string>"] = len(argv[1]), None, argv[1].splitlines(True), "<string>"
        return compile(argv[1], "<string>", "exec", 0, True), names
    sys.argv[:] = argv
    path = os.path.abspath(argv[0])
    folder = os.path.dirname(os.path.realpath(path))
    packed = os.path.isdir(path) or zipfile.is_zipfile(path)
    if sys.path[:1] == [""]:
        sys.path[0] = path if packed else folder
    if packed:  # a directory or an archive with a __main__.py
        if sys.path[0] != path:
            sys.path.insert(0, path)
        unload_shadowed()
        _, spec, code = runpy._get_main_module_details()
        names.update(__file__=spec.origin, __cached__=spec.cached, __loader__=spec.loader, __package__="", __spec__=spec)
        return code, names
    unload_shadowed()
    with open(path, "rb") as f:
        text = f.read()
    loader = importlib.machinery.SourceFileLoader("__main__", path)
    names.update(__file__=path, __cached__=None, __loader__=loader)
    return compile(text, path, "exec", 0, True), names


def adjust_pytest(shim, argv):
    """Turns off pytest-xdist and pytest-cov if an option enables them, and prints which options it added."""
    options = " ".join(argv) + " " + os.environ.get("PYTEST_ADDOPTS", "")
    for name in ("pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg"):
        try:
            with open(name, encoding="utf-8", errors="replace") as f:
                options += " " + " ".join(re.findall(r"addopts[^\[]*", f.read(1 << 20)))
        except OSError:
            pass
    at = argv.index("--") if "--" in argv else len(argv)
    for plugin, enabled_by, option, why in (
            ("xdist", r"(?<!\S)[\"']?(-n\s*=?\s*[1-9al]|--numprocesses)", "-n0", "worker processes cannot be stopped"),
            ("pytest_cov", r"(?<!\S)[\"']?--cov\b", "--no-cov", "coverage and a debugger cannot trace the same program")):
        if re.search(enabled_by, options) and importlib.util.find_spec(plugin):
            argv.insert(at, option)
            shim.message("(%s was added to the command line: %s.)" % (option, why))


def breakpoint_enabled():
    """Returns whether breakpoint() stops the program. PYTHONBREAKPOINT=0 disables it."""
    return sys.flags.ignore_environment or os.environ.get("PYTHONBREAKPOINT") != "0"


def trim_traceback(tb, code):
    """Returns the part of a traceback that begins with the frame of code, without the debugger's frames before it."""
    while tb is not None and tb.tb_frame.f_code is not code:
        tb = tb.tb_next
    return tb


def finish(shim, code):
    """Waits for the program's threads and sends the frame that ends the session. Exit handlers run later."""
    if not shim.is_debuggee():
        return
    shim.wait_for_threads()
    shim.acquire_lock()
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if shim.other_tracer:
            shim.channel.settle()
            shim.message("(%s called sys.settrace: the debugger could not trace the program from then on.)" % shim.other_tracer)
        shim.finished = True
        if MONITORING:  # a callback could fail while the interpreter shuts down
            MONITORING.set_events(shim.tool, 0)
        shim.channel.send(dict(shim.common_fields("finished"), exit_code=code, missed=shim.missed(), children=shim.had_children()))
    finally:
        shim.lock.release()


def show_exception(error, tb):
    """Prints an uncaught exception as the interpreter would. If the program replaced sys.excepthook or sys.stderr,
    that may print nothing, so the function also returns a text for the debugger to print."""
    hook, stream = sys.excepthook, sys.stderr
    try:
        hook(type(error), error, tb)
        if hook is sys.__excepthook__ and stream is sys.__stderr__:
            return ""
    except BaseException as e:
        sys.__excepthook__(type(e), e.with_traceback(e.__traceback__.tb_next), e.__traceback__)
    return "Uncaught exception: " + "".join(traceback.format_exception_only(type(error), error)).strip()


def main():
    channel = Channel()
    config = channel.receive()
    module = sys.modules["__main__"] = types.ModuleType("__main__")
    root = sys.argv[1]
    try:
        code, names = load_main(sys.argv[2:])
    except (ImportError, OSError, SyntaxError, ValueError) as e:
        traceback.print_exception(type(e), e, None)
        sys.exit(1)
    module.__dict__.update(names)
    shim = Shim(channel, config, root)
    if re.search(r"(^|/)(pytest(/__main__)?|py\.test)(\.py)?$", sys.argv[0]):
        adjust_pytest(shim, sys.argv)
    shim.main_code = code
    pdb.Pdb = delegate(shim)
    if hasattr(sys, "breakpointhook"):
        sys.breakpointhook = lambda *_, **__: shim.set_trace(sys._getframe().f_back) if breakpoint_enabled() else None
    sys.settrace = shim.settrace
    if MONITORING:
        shim.register()
        sys.gettrace = shim.gettrace
    else:
        threading.settrace(shim.trace_dispatch)
    signal.signal(signal.SIGINT, shim.on_interrupt)
    try:
        shim.run(code, module.__dict__)
    except SystemExit as e:
        value = e.code
        finish(shim, 0 if value is None else value & 0xFF if isinstance(value, int) else 1)
        raise
    except BaseException as e:
        tb = trim_traceback(e.__traceback__, code)
        summary = show_exception(e.with_traceback(tb), tb)
        if not shim.is_debuggee():
            sys.exit(1)
        if summary:
            shim.channel.settle()
            shim.message(summary)
        if tb is not None:
            shim.post_mortem, shim.event = True, "exception"
            shim.interaction(None, e if hasattr(Base, "do_exceptions") else tb)
        finish(shim, 1)
        sys.exit(1)
    finish(shim, 0)


main()
