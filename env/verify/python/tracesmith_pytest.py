"""Reports the result of each test of pytest. The plugin is registered when pytest's
configuration looks for plugins, before any conftest is loaded. This works no matter how
pytest is started."""
import ast
import builtins
import importlib.machinery
import os
import sys

from tracesmith_functions import DEFERRED, Codes, plain, wrap_test, wrapped_functions

__unittest = True  # as in tracesmith_unittest

# Hooks whose implementations decide about a result or get it before the plugin.
CRITICAL = [
    "pytest_runtest_protocol", "pytest_runtest_setup", "pytest_runtest_call", "pytest_runtest_teardown",
    "pytest_runtest_makereport", "pytest_runtest_logreport", "pytest_pyfunc_call", "pytest_runtestloop",
    "pytest_exception_interact", "pytest_fixture_setup", "pytest_sessionfinish", "pytest_assertrepr_compare",
]


def install(channel, guard, plan, assertions):
    name = "_pytest.config"

    class Finder(object):
        """Calls register_with when pytest's configuration is imported for the first time."""

        @staticmethod
        def find_spec(fullname, path=None, target=None):
            if fullname != name:
                return None
            sys.meta_path.remove(Finder)
            spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
            if spec is None or spec.loader is None:
                return spec
            execute = spec.loader.exec_module

            def exec_module(module):
                execute(module)
                register_with(module.PytestPluginManager, channel, guard, plan, assertions)

            spec.loader.exec_module = exec_module
            return spec

    sys.meta_path.insert(0, Finder)


def register_with(manager, channel, guard, plan, assertions):
    consider = manager.consider_env

    def consider_env(self):
        if not channel.active:
            channel.active = True
            channel.tell("report", {"k": "runner"})  # now, because a conftest could end the process
            import pytest

            self.register(plugin(pytest, self, channel, guard, plan, assertions), "tracesmith")
            if plan.probe is not None:
                self.register(probe_plugin(pytest, guard, plan), "tracesmith_probe")
            if plan.traced() is not None:
                rewrite_only(plan.traced())
            guard.remember(
                ["_pytest.runner", "_pytest.python", "_pytest.reports", "_pytest.outcomes", "_pytest.unittest",
                 "_pytest.skipping", "pluggy", "pytest"],
                ["_pytest", "unittest"],
            )
        return consider(self)

    manager.consider_env = consider_env


def rewrite_only(names):
    """Makes pytest rewrite no assertions of test functions with other names, because that takes longer than most tests."""
    from _pytest.assertion.rewrite import AssertionRewriter

    def others(body):
        for node in body:
            if isinstance(node, ast.ClassDef):
                for inner in others(node.body):
                    yield inner
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith("test") and node.name not in names:
                yield node

    def run(self, mod):
        bodies = [(node, node.body) for node in others(mod.body)]
        for node, _ in bodies:
            node.body = [ast.Pass()]
        rewrite(self, mod)
        for node, body in bodies:
            node.body = body

    rewrite, AssertionRewriter.run = AssertionRewriter.run, run


def node_id(nodeid, config, guard):
    """Returns the id of a test, with the path of its file relative to the workspace and
    without the "()" that old versions of pytest write for the instance of a class."""
    root = str(getattr(config, "rootpath", None) or config.rootdir)
    path, sep, rest = nodeid.partition("::")
    names, bracket, parameters = rest.partition("[")
    return (guard.relative(os.path.join(root, path)) if path else "") + sep + names.replace("::()", "") + bracket + parameters


def probe_plugin(pytest, guard, plan):
    class ProbePlugin(object):
        status = ""

        @pytest.hookimpl(hookwrapper=True, tryfirst=True)
        def pytest_runtest_protocol(self, item):
            name = node_id(item.nodeid, item.config, guard)
            self.status = ""
            plan.begin(name)
            try:
                yield
            finally:
                plan.end(name, self.status or "skipped")

        def pytest_runtest_logreport(self, report):
            if report.failed:
                self.status = "failed"
            elif report.when == "call" and report.passed and not self.status and not hasattr(report, "wasxfail"):
                self.status = "passed"

    return ProbePlugin()


def plugin(pytest, manager, channel, guard, plan, assertions):
    first, last = pytest.hookimpl(tryfirst=True), pytest.hookimpl(trylast=True)
    phases = {}  # node id -> statuses of its phases
    functions = {}  # node id -> what function_of returned at collection
    state = {"hooks": None}

    def hooks():
        out = [("", manager, vars(manager).get("_inner_hookexec"))]
        for name in CRITICAL:
            caller = getattr(manager.hook, name, None)
            if caller is not None:
                out.append((name, caller, getattr(caller, "_hookexec", None)))
                out.extend((name, impl.plugin, impl.function) for impl in caller.get_hookimpls())
        return out

    def hooks_intact():
        if state["hooks"] is None:
            return None
        then, now = state["hooks"], hooks()
        if len(then) == len(now) and all(
            a[0] == b[0] and a[1] is b[1] and (a[2] is b[2] or a[2] == b[2]) for a, b in zip(then, now)
        ):
            return None
        for name, _, function in now:
            if not any(f is function for _, _, f in then):
                return "a hook was added while the tests ran (%s)" % name
        return "the hooks of the test runner were changed while the tests ran"

    def function_of(item):
        owner = getattr(item, "cls", None) or getattr(item, "module", None)
        name = getattr(item, "originalname", None) or item.name.split("[")[0]
        for place in getattr(owner, "__mro__", (owner,)):
            if place is not None and name in vars(place):
                value = vars(place)[name]
                return (item, place, name, value, getattr(value, "__code__", None))
        return None

    def check_function(nodeid):
        known = functions.get(nodeid)
        if known is None:
            return
        item, place, name, value, code = known
        if vars(place).get(name) is not value or getattr(value, "__code__", None) is not code:
            guard.add_finding("the test function %s was replaced while the tests ran" % name)
        for attr in ("runtest", "setup", "teardown", "repr_failure", "listchain", "reportinfo"):
            if attr in vars(item):
                guard.add_finding("the method %s of the test %s was replaced" % (attr, name))

    def own_function(item):
        """Returns the plain function of the test. Returns None if there is none, as for items that a
        conftest makes, or if a call of it returns before its code has run (async functions, generators)."""
        if not isinstance(item, pytest.Function):
            return None
        known = functions.get(item.nodeid)
        fn = plain(known[3] if known else getattr(item, "obj", None))
        code = getattr(fn, "__code__", None)
        return fn if code is not None and not code.co_flags & DEFERRED else None

    def function_files():
        """Returns the files, other than the test files themselves, from which test functions
        come. Reports test functions that differ from the source in their file."""
        files, sources = set(), {}
        for known in functions.values():
            if known is None:
                continue
            module = known[1].__module__ if isinstance(known[1], type) else known[1].__name__
            file = getattr(sys.modules.get(module), "__file__", None)
            for fn in wrapped_functions(known[3]):
                code = fn.__code__
                if getattr(fn, "__builtins__", vars(builtins)) is not vars(builtins) or \
                        not any(fn.__globals__.get("__builtins__", builtins) is b for b in (builtins, vars(builtins))):
                    guard.add_finding("the test function %s uses its own builtins" % known[2])
                if file is None or guard.real(code.co_filename) != guard.real(file):
                    files.add(code.co_filename)
                    continue
                if plan.traced() is not None:
                    continue
                if file not in sources:
                    sources[file] = Codes(file, state["config"])
                if not sources[file].contain(code):
                    guard.add_finding("the test function %s does not match its source file" % known[2])
        return files

    def status_of(seen):
        order = ["error", "failed", "xpassed", "xfailed", "skipped", "passed"]
        return next((s for s in order if s in seen), "error")

    class Plugin(object):
        @first
        def pytest_cmdline_main(self, config):
            # Tests must run in this process, where the hooks observe them, so switch off
            # pytest-xdist and pytest-forked.
            if hasattr(config.option, "numprocesses"):
                config.option.numprocesses, config.option.dist, config.option.tx = None, "no", []
            if hasattr(config.option, "forked"):
                config.option.forked = False
            if plan.traced() is not None:
                config.option.tbstyle = "no"  # formatting a traceback takes longer than most tests
                files = {os.path.join(guard.workdir, name.split("::")[0]) for name in plan.only}
                if all(os.path.isfile(file) for file in files):
                    config.args = sorted(files)

        @last
        def pytest_configure(self, config):
            state["config"] = config
            guard.accept_replacements()

        @last
        def pytest_collection_modifyitems(self, config, items):
            plan.arrange(items, lambda item: node_id(item.nodeid, config, guard), lambda item: item.listchain())

        @last
        def pytest_collection_finish(self, session):
            guard.check()
            state["hooks"] = hooks()
            guard.watch(hooks_intact)
            for item in session.items:
                functions[item.nodeid] = function_of(item)
                fn = own_function(item)
                if fn is not None:
                    channel.tell("expect", item.nodeid, item, fn)
            codes = [getattr(function, "__code__", None) for _, _, function in state["hooks"]]
            files = function_files() | {c.co_filename for c in codes if c is not None}
            files = guard.program_files(files) | guard.import_hook_files()
            names = [node_id(item.nodeid, item.config, guard) for item in session.items]
            channel.tell("report", {"k": "plan", "hooks": sorted(files), "ids": names})

        @first
        def pytest_runtest_logstart(self, nodeid):
            channel.tell("report", {"k": "start", "id": node_id(nodeid, state["config"], guard)})

        @pytest.hookimpl(hookwrapper=True, trylast=True)
        def pytest_runtest_call(self, item):
            # Runs innermost, after other plugins have wrapped the function.
            if own_function(item) is None:
                yield
                return
            function, case = item.obj, getattr(item, "_testcase", None)
            call = wrap_test(channel, item.nodeid, item, function)
            item.obj = call
            if case is not None:  # before pytest 5.4 a TestCase calls its own attribute
                setattr(case, item.name, call)
            yield
            item.obj = function
            if case is not None:
                vars(case).pop(item.name, None)

        @first
        def pytest_collectreport(self, report):
            if report.failed:
                channel.tell("report", {"k": "collect", "id": node_id(report.nodeid, state["config"], guard)})

        @first
        def pytest_runtest_logreport(self, report):
            outcome, when = report.outcome, report.when
            seen = phases.setdefault(report.nodeid, [])
            if outcome == "rerun":
                seen[:] = ["rerun"]
                return
            if when == "teardown" and seen == ["rerun"]:  # the teardown of an attempt that does not count
                return
            if hasattr(report, "context") and hasattr(report.context, "kwargs"):  # one of a test's subtests
                if outcome == "failed":
                    seen.append("failed")
                return
            if hasattr(report, "wasxfail"):
                seen.append("xfailed" if outcome == "skipped" else "xpassed")
            elif outcome == "failed":
                seen.append("failed" if when == "call" else "error")
            elif outcome == "skipped":
                seen.append("skipped")
            elif when == "call":
                seen.append("passed")
            check_function(report.nodeid)
            if when != "teardown":
                # Until teardown, fixtures may have replaced functions with good reason.
                return
            guard.check(everything=False)
            channel.tell("done", report.nodeid, node_id(report.nodeid, state["config"], guard), status_of(seen))
            del phases[report.nodeid]

        @last
        def pytest_sessionfinish(self, session, exitstatus):
            items = [i for i in session.items if functions.get(i.nodeid)]
            if items:
                canary(items[0], guard)
            assertions(guard)
            guard.check()
            state["hooks"] = None
            guard.release()
            channel.tell("close")

        @last
        def pytest_unconfigure(self, config):
            session = state.get("session")
            status = getattr(session, "exitstatus", None)
            if status is not None:
                channel.tell("ended", int(status))
            guard.check()

        @first
        def pytest_sessionstart(self, session):
            state["session"] = session

    return Plugin()


def canary(item, guard):
    """Checks that the runner still reports a failing call as failed."""
    from _pytest.reports import TestReport
    from _pytest.runner import CallInfo

    def wrong():
        raise AssertionError

    option = item.config.option
    style, option.tbstyle = option.tbstyle, "no"  # formatting a traceback takes longer than most tests
    try:
        make = getattr(CallInfo, "from_call", None)
        if make is None:  # before pytest 4
            return
        call = make(wrong, when="call")
        if TestReport.from_item_and_call(item, call).outcome != "failed":
            guard.add_finding("a failing assertion was not reported as a failure")
    except Exception as error:
        guard.add_finding("the test runner no longer works (%s)" % type(error).__name__)
    finally:
        option.tbstyle = style
