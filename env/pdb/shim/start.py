# Starting and ending the program.
#
# Started as: python -u -c BOOTSTRAP WORKSPACE {-m MODULE | -c CODE |
# --command NAME | SCRIPT} ARG..., with the module's source and then one line of
# configuration on standard input.
import builtins
import linecache
import os
import pdb
import runpy
import signal
import sys
import traceback
import types


def delegate(shim):
    """pdb.Pdb as the program sees it: everything goes to the one debugger there is."""

    class Delegate(Base):
        def __init__(self, *_, **__):
            Base.__init__(self, stdin=Nothing(), stdout=shim.stdout, nosigint=True, readrc=False)

        def set_trace(self, frame=None, **_):
            shim.set_trace(frame or sys._getframe().f_back)

        def interaction(self, frame, tb, *_):
            shim.event = "exception"
            shim.interaction(frame, tb)

    return Delegate


def load(argv):
    """Returns the code and the names of the main module; sets sys.argv and sys.path."""
    names = {"__name__": "__main__", "__doc__": None, "__package__": None, "__spec__": None,
             "__loader__": None, "__builtins__": builtins, "__annotations__": {}}
    if argv[0] == "-m":
        sys.argv[:] = ["-m"] + argv[2:]
        if sys.path[:1] == [""]:
            sys.path[0] = os.getcwd()
        _, spec, code = runpy._get_module_details(argv[1])
        sys.argv[0] = spec.origin
        names.update(__file__=spec.origin, __cached__=spec.cached, __loader__=spec.loader,
                     __package__=spec.parent, __spec__=spec)
        return code, names
    if argv[0] == "-c":
        sys.argv[:] = ["-c"] + argv[2:]
        linecache.cache["<string>"] = len(argv[1]), None, argv[1].splitlines(True), "<string>"
        return compile(argv[1], "<string>", "exec", 0, True), names
    if argv[0] == "--command":
        argv = [__import__("shutil").which(argv[1]) or argv[1]] + argv[2:]
    sys.argv[:] = argv
    path = os.path.abspath(argv[0])
    folder = os.path.dirname(os.path.realpath(path))
    if os.path.isdir(path):
        path, folder = os.path.join(path, "__main__.py"), path
    if sys.path[:1] == [""]:
        sys.path[0] = folder
    with open(path, "rb") as f:
        text = f.read()
    loader = __import__("importlib.machinery").machinery.SourceFileLoader("__main__", path)
    names.update(__file__=path, __cached__=None, __loader__=loader)
    return compile(text, path, "exec", 0, True), names


def trim(tb, code):
    """The traceback without the debugger's own frames."""
    while tb is not None and tb.tb_frame.f_code is not code:
        tb = tb.tb_next
    return tb


def finish(shim, code):
    """Announces the end; the interpreter's own shutdown (threads, atexit) follows."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if shim.mine():
        shim.channel.send(dict(shim.base("finished"), exit_code=code))


def main():
    channel = Channel()
    config = channel.receive()
    module = sys.modules["__main__"] = types.ModuleType("__main__")
    root = sys.argv[1]
    try:
        code, names = load(sys.argv[2:])
    except (ImportError, OSError, SyntaxError, ValueError) as e:
        traceback.print_exception(type(e), e, None)
        sys.exit(1)
    module.__dict__.update(names)
    shim = Shim(channel, config, root)
    shim.main_code = code
    pdb.Pdb = delegate(shim)
    if hasattr(sys, "breakpointhook"):
        sys.breakpointhook = lambda *_, **__: shim.set_trace(sys._getframe().f_back)
    signal.signal(signal.SIGINT, shim.on_interrupt)
    try:
        shim.run(code, module.__dict__)
    except SystemExit as e:
        value = e.code
        finish(shim, 0 if value is None else value & 0xFF if isinstance(value, int) else 1)
        raise
    except BaseException as e:
        if not shim.mine():
            raise
        tb = trim(e.__traceback__, code)
        sys.excepthook(type(e), e.with_traceback(tb), tb)
        if tb is not None:
            shim.post_mortem, shim.event = True, "exception"
            shim.interaction(None, tb)
        finish(shim, 1)
        sys.exit(1)
    finish(shim, 0)


main()
