"""Start-up hook of the verifier: runs in a Python process before any program code. It loads
the other hooks, and then runs the sitecustomize module that the interpreter would have
loaded otherwise. It is short, because zipimport compiles it more than once.
"""
import marshal
import os
import sys


def _read(name):
    return __loader__.get_data(os.path.join(os.path.dirname(__file__), name))


def _load(name):
    """Runs a module of the hooks with a file name like that of frozen code. Otherwise
    coverage and trace would try to read its source file, which does not exist."""
    code = _compiled.get(name)
    if code is None:
        try:
            code = compile(_read(name + ".py"), "<frozen %s>" % name, "exec")
        except (IOError, OSError):
            return None
    module = sys.modules[name] = type(sys)(name)
    exec(code, module.__dict__)
    return module


_version, _, _compiled = _read("compiled").partition(b"\0")
# No other interpreter can be trusted to understand the compiled code.
_compiled = marshal.loads(_compiled) if _version == sys.version.encode() else {}
_load("tracesmith_start").start(_load, _read, os.path.dirname(__file__))
_compiled.clear()  # the program can reach this module
_own = sys.modules.pop("sitecustomize", None)
try:
    import sitecustomize  # the interpreter's own, if it has one
except ImportError as _error:
    if _error.name != "sitecustomize":
        raise
finally:
    # The import system expects that sys.modules has the module that it is importing.
    sys.modules.setdefault("sitecustomize", _own)
