"""Removes the channel from the environment, so that neither the program nor its children see
it, and installs the hooks. They are in a zip archive: an open, sealed file without a name,
which no process can change.
"""
import os
import sys


def start(load, read, here):
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
            modules = [load("tracesmith_" + name) for name in names]
            tracesmith_channel, tracesmith_guard, tracesmith_plan, _, _, tracesmith_pytest, tracesmith_unittest = modules
            config = tracesmith_channel.request_key(directory, read("config.json"))
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
        for name in ["start"] + names:
            sys.modules.pop("tracesmith_" + name, None)
        sys.path[:] = [p for p in sys.path if p != here]
        sys.path_importer_cache.pop(here, None)
        getattr(sys.modules.get("zipimport"), "_zip_directory_cache", {}).pop(here, None)
        try:
            os.close(int(os.path.basename(here)))
        except (OSError, ValueError):
            pass
