"""Start-up hook of the verifier: runs in a Python process before any program code.

It removes the channel from the environment, so that neither the program nor its
children see it, installs the hooks, and then runs the sitecustomize module that the
interpreter would have loaded otherwise. The hooks are in a zip archive: an open, sealed
file without a name, which no process can change.
"""
import os
import sys


def _load(here, name):
    """Runs a module of the hooks with a file name like that of frozen code. Otherwise
    coverage and trace would try to read its source file, which does not exist."""
    try:
        source = __loader__.get_data(os.path.join(here, name + ".py"))
    except (IOError, OSError):
        return None
    module = sys.modules[name] = type(sys)(name)
    exec(compile(source, "<frozen %s>" % name, "exec"), module.__dict__)
    return module


def _start():
    here = os.path.dirname(__file__)
    directory = os.environ.pop("TRACESMITH_CHANNEL", None)
    rest = [p for p in os.environ.pop("PYTHONPATH", "").split(os.pathsep) if p != here]
    if any(rest):
        os.environ["PYTHONPATH"] = os.pathsep.join(rest)
    # The launcher (env/verify/channel.go) sets this value, so that Python runs no files of
    # the user's site directory before this hook.
    if os.environ.get("PYTHONNOUSERSITE") == "tracesmith":
        del os.environ["PYTHONNOUSERSITE"]
        import site

        site.ENABLE_USER_SITE = True
    names = ["channel", "guard", "plan", "probe", "functions", "pytest", "unittest"]
    try:
        if directory is not None:
            modules = [_load(here, "tracesmith_" + name) for name in names]
            tracesmith_channel, tracesmith_guard, tracesmith_plan, _, _, tracesmith_pytest, tracesmith_unittest = modules
            config = tracesmith_channel.request_key(directory, __loader__.get_data(os.path.join(here, "config.json")))
            if config is not None:  # otherwise this process has no key, and runs without hooks
                workdir, cwd = config["workdir"], os.getcwd()
                # The ledger needs a function of its own, because the program can reach the
                # guard and the plan, and could change the cache of a function that they share.
                workspace_paths = [tracesmith_guard.make_workspace_path(workdir, cwd) for _ in range(3)]
                guard = tracesmith_guard.Guard(workdir, directory, workspace_paths[0])
                guard.remember(["importlib", "_frozen_importlib", "_frozen_importlib_external"])
                channel = tracesmith_channel.Channel(directory, config, guard, workspace_paths[1])
                plan = tracesmith_plan.Plan(config, directory, workspace_paths[2])
                tracesmith_unittest.install(channel, guard, plan)
                tracesmith_pytest.install(channel, guard, plan, tracesmith_unittest.canary)
    finally:
        for name in names:
            sys.modules.pop("tracesmith_" + name, None)
        sys.path[:] = [p for p in sys.path if p != here]
        sys.path_importer_cache.pop(here, None)
        getattr(sys.modules.get("zipimport"), "_zip_directory_cache", {}).pop(here, None)
        try:
            os.close(int(os.path.basename(here)))
        except (OSError, ValueError):
            pass


_start()
_own = sys.modules.pop("sitecustomize", None)
try:
    import sitecustomize  # the interpreter's own, if it has one
except ImportError as _error:
    if _error.name != "sitecustomize":
        raise
finally:
    # The import system expects that sys.modules has the module that it is importing.
    sys.modules.setdefault("sitecustomize", _own)
