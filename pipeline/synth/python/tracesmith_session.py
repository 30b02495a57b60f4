"""Runs a project's tests in this process, which exits at the end of the run.

Writes records as lines of JSON: one for each test, one for each failure to describe,
and one at the end.
"""
import atexit
import json
import os
import random
import sys
import time

import tracesmith_children
import tracesmith_clock
import tracesmith_failure
import tracesmith_unittest_session

MAX_TEXT = 4000


def run(request, root, log, probe, out):
    """Runs the tests of a request and exits the process. Records go to the file descriptor out, the tests' output to
    the file log, and the output of the request's probe to the file probe."""
    try:
        os.setsid()
        redirect_output(log)
        os.chdir(root)
        random.seed()  # the state of the generator must not come from the parent process
        sys.dont_write_bytecode = not request.get("compile", False)
        session = Session(request, root, probe, out)
        try:
            code = session.pytest() if request["runner"] == "pytest" else session.unittest()
        except SystemExit as e:
            code = e.code if isinstance(e.code, int) else 1
        session.finish(code)
    except BaseException as e:
        os.write(out, (json.dumps({"k": "broke", "what": "%s: %s" % (type(e).__name__, e)}) + "\n").encode())
    finally:
        os._exit(0)


def redirect_output(log):
    """Redirects standard output and standard error to a file, and standard input from /dev/null."""
    null = os.open(os.devnull, os.O_RDONLY)
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(null, 0)
    os.dup2(file, 1)
    os.dup2(file, 2)
    sys.stdin = os.fdopen(0, "r")
    sys.stdout = os.fdopen(1, "w", 1)
    sys.stderr = os.fdopen(2, "w", 1)


class Session(object):
    """One run of the tests, or several passes of them."""

    def __init__(self, request, root, probe, out):
        self.root, self.out = os.path.realpath(root), out
        self.argv = request["argv"]
        self.module = request.get("module", True)  # started as python -m, which puts the directory on the path
        self.passes = request.get("passes") or []
        self.deadline = time.monotonic() + request.get("budget", 0)  # for all passes together
        self.probe, self.probe_file, self.places = None, probe, {}
        self.files = None  # the files to collect; None for all
        if not request.get("compile") and request.get("only") is not None and not any("::" in a for a in self.argv):
            self.files = {name.partition("::")[0] for name in request["only"]}
        here = os.path.dirname(os.path.abspath(__file__))
        sys.path[:] = [p for p in sys.path if os.path.abspath(p or ".") != here]
        os.environ.update(request.get("env") or {})
        given = (request.get("env") or {}).get("PYTHONPATH", "").split(os.pathsep)
        sys.path[:0] = [self.root] * self.module + [os.path.join(self.root, p) for p in given if p]
        self.configure(request, None)

    def configure(self, request, number):
        """Sets which tests run and how. number is the number of the pass; None if there are no passes."""
        self.first = set(request.get("first") or ())
        self.only = set(request["only"]) if request.get("only") is not None else None
        self.clocks = request.get("clocks")  # whether to find tests that compare times
        self.shuffle = request.get("shuffle", 0)
        self.max_failures = request.get("max_failures", 0)  # the run stops after more failures; 0 is no limit
        self.described = set()
        self.describe = request.get("describe", 0)  # number of failures still to describe
        self.first_remaining, self.failed = len(self.first), 0
        tracesmith_children.limit_cpu(request.get("cpu_limit", 0))
        if request.get("probe"):
            namespace = {"__name__": "tracesmith_probe"}
            exec(compile(request["probe"]["source"], "<tracesmith probe>", "exec"), namespace)
            file = self.probe_file if number is None else "%s.%d" % (self.probe_file, number)
            self.probe = namespace["start"](request["probe"]["config"], file, self.place)

    def finish(self, code):
        """Writes the last record of a run."""
        if self.probe is not None:
            atexit._run_exitfuncs()  # the probe writes its last records in an exit function
        sys.stdout.flush()
        sys.stderr.flush()
        self.put({"k": "end", "code": int(code)})

    def put(self, record):
        data = (json.dumps(record) + "\n").encode()
        while data:
            data = data[os.write(self.out, data):]

    def place(self, file):
        """Returns the path of a file in the project; None for files outside of it."""
        if file not in self.places:  # cached, because a probe asks at every function call
            full = os.path.realpath(file) if file[:1] != "<" else file
            self.places[file] = full[len(self.root) + 1:] if full.startswith(self.root + os.sep) else None
        return self.places[file]

    def begin(self, name):
        self.compared = None  # both sides of the last comparison that failed in an assert statement
        if self.probe is not None:
            self.probe.begin(name)

    def done(self, name, status, function):
        """Records a test; returns True if the remaining tests need not run. function is that of the test, or None."""
        if self.probe is not None:
            self.probe.end(name, status)
        record = {"k": "test", "id": name, "s": status}
        if self.clocks and tracesmith_clock.compares_times(function):
            record["clock"] = True
        self.put(record)
        self.failed += status in tracesmith_children.NOT_A_PASS
        if name in self.first:
            self.first_remaining -= 1
            if self.first_remaining == 0 and self.failed == 0:
                return True
        return bool(self.max_failures) and self.failed > self.max_failures

    def failure(self, name, kind, value, tb):
        """Records the description of a failure, unless enough failures have been described."""
        if self.describe <= 0 or name in self.described:
            return
        self.describe -= 1
        self.described.add(name)
        text = json.dumps(tracesmith_failure.describe(kind, value, tb, self.place, self.compared))
        text = text.replace(json.dumps(self.root + os.sep)[1:-1], "")  # a user has the project elsewhere
        self.put(dict(json.loads(text), k="failure", id=name))

    def draws(self):
        """Returns a function that maps each key to a random number. Its results depend on the seed self.shuffle and
        on the order in which keys are first used. A negative seed stands for the opposite order of its absolute value."""
        source, drawn = random.Random(abs(self.shuffle)), {}

        def draw(key):
            if key not in drawn:
                drawn[key] = source.random()
            return drawn[key]

        return draw

    def pytest(self):
        import pytest

        sys.argv = ["pytest"] + self.argv
        return pytest.main(self.argv + ["-p", "no:cacheprovider"], plugins=[self.plugin(pytest)])

    def plugin(self, pytest):
        session = outer = self
        from _pytest.runner import CollectReport

        phases, names, places = {}, {}, {}

        def name_of(nodeid, config):
            if nodeid not in names:
                names[nodeid] = read_name(nodeid, config)
            return names[nodeid]

        def read_name(nodeid, config):
            root = str(getattr(config, "rootpath", None) or config.rootdir)
            path, sep, rest = nodeid.partition("::")
            full = os.path.realpath(os.path.join(root, path))
            return ((session.place(full) or full) if path else "") + sep + rest

        class Plugin(object):
            @pytest.hookimpl(tryfirst=True)
            def pytest_cmdline_main(self, config):
                if hasattr(config.option, "numprocesses"):
                    config.option.numprocesses, config.option.dist, config.option.tx = None, "no", []
                config.option.tbstyle = "no"  # pytest's tracebacks take longer than most tests, and nothing reads them

            @pytest.hookimpl(tryfirst=True)
            def pytest_make_collect_report(self, collector):
                """Leaves out files without any of the tests, so that they are not imported."""
                if session.files is None or not isinstance(collector, pytest.File) or isinstance(collector, pytest.Package):
                    return None
                if name_of(collector.nodeid, collector.config) in session.files:
                    return None
                return CollectReport(collector.nodeid, "passed", None, [])

            @pytest.hookimpl(trylast=True)
            def pytest_collection_modifyitems(self, config, items):
                if session.only is not None:
                    items[:] = [i for i in items if name_of(i.nodeid, config) in session.only]
                self.arrange(config, items)
                for n, item in enumerate(items):
                    places.setdefault(name_of(item.nodeid, config), []).append(n)

            def arrange(self, config, items):
                """Reorders the tests. A module or class stays together when tests are shuffled."""
                if session.shuffle:
                    draw = session.draws()
                    items.sort(key=lambda item: [draw(key.nodeid) for key in item.listchain()], reverse=session.shuffle < 0)
                if session.first:
                    items.sort(key=lambda item: name_of(item.nodeid, config) not in session.first)

            @pytest.hookimpl(tryfirst=True)
            def pytest_runtestloop(self, session):
                if not outer.passes or session.testsfailed:
                    return None  # let pytest run its own loop
                tracesmith_children.run_passes(outer, lambda _: self.loop(session))
                return True

            def loop(self, session):
                wanted = places if outer.only is None else outer.only
                chosen = sorted(n for name in wanted for n in places.get(name, ()))
                items = [session.items[n] for n in chosen]  # reads no other item, whose memory the fork would have to copy
                self.arrange(session.config, items)
                for n, item in enumerate(items):
                    after = items[n + 1] if n + 1 < len(items) else None
                    item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
                    if session.shouldfail or session.shouldstop:
                        break
                return 1 if session.testsfailed else 0

            @pytest.hookimpl(hookwrapper=True, tryfirst=True)
            def pytest_runtest_protocol(self, item):
                session.begin(name_of(item.nodeid, item.config))
                yield

            @pytest.hookimpl(tryfirst=True)
            def pytest_assertrepr_compare(self, op, left, right):
                if session.describe > 0 and op in ("==", "is"):
                    session.compared = left, right

            @pytest.hookimpl(hookwrapper=True)
            def pytest_runtest_makereport(self, item, call):
                outcome = yield
                report = outcome.get_result()
                if report.failed and call.excinfo is not None:
                    e = call.excinfo
                    session.failure(name_of(item.nodeid, item.config), e.type, e.value, e.tb)
                if report.when == "teardown":
                    self.finish(item, report)

            def finish(self, item, report):
                seen = phases.setdefault(report.nodeid, [])
                self.note(report, seen)
                order = ["error", "failed", "xpassed", "xfailed", "skipped", "passed"]
                status = next((s for s in order if s in seen), "error")
                if session.done(name_of(item.nodeid, item.config), status, getattr(item, "function", None)):
                    item.session.shouldstop = "the remaining tests need not run"

            def note(self, report, seen):
                if hasattr(report, "wasxfail"):
                    seen.append("xfailed" if report.outcome == "skipped" else "xpassed")
                elif report.outcome == "failed":
                    seen.append("failed" if report.when == "call" else "error")
                elif report.outcome == "skipped":
                    seen.append("skipped")
                elif report.when == "call":
                    seen.append("passed")

            @pytest.hookimpl(tryfirst=True)
            def pytest_runtest_logreport(self, report):
                if hasattr(report, "context") and hasattr(report.context, "kwargs"):  # one of a test's subtests
                    if report.outcome == "failed":
                        phases.setdefault(report.nodeid, []).append("failed")
                elif report.when != "teardown":
                    self.note(report, phases.setdefault(report.nodeid, []))

            @pytest.hookimpl(tryfirst=True)
            def pytest_collectreport(self, report):
                if report.failed:
                    session.put({"k": "collect", "id": report.nodeid, "text": str(report.longrepr)[-MAX_TEXT:]})

        return Plugin()

    def unittest(self):
        return tracesmith_unittest_session.run(self)
