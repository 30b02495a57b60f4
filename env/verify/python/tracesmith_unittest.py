"""Reports the result of each test of unittest, which may be started with python -m unittest
or by a script that calls unittest.main. The outermost call of TextTestRunner.run is the
session. Its result object records the outcome of each test."""
import os
import sys
import unittest
import unittest.case
import unittest.loader
import unittest.main
import unittest.runner

from tracesmith_functions import DEFERRED, plain, wrap_test

# unittest omits the frames of modules that have this variable from tracebacks of failures.
__unittest = True

RANK = ["passed", "skipped", "xfailed", "xpassed", "failed", "error"]


def install(channel, guard, plan):
    state = {"running": False, "active": False}
    run = unittest.TextTestRunner.run

    def wrapped(self, test):
        if state["running"] or channel.active and not state["active"]:
            return run(self, test)
        channel.active = state["running"] = state["active"] = True
        guard.remember(["unittest"])  # modules of unittest that were loaded after install
        make = self._makeResult
        record = Recorder(channel, guard, plan)
        arrange(test, plan)
        channel.tell("report", {"k": "plan", "ids": names(test)})
        self._makeResult = lambda: record.attach(make())
        try:
            result = run(self, test)
        finally:
            state["running"] = False
        channel.tell("ended", 0 if result.wasSuccessful() else 1)
        canary(guard)
        guard.check()
        return result

    wrapped.__name__, wrapped.__doc__ = "run", run.__doc__
    unittest.TextTestRunner.run = wrapped
    guard.remember(["unittest"])  # before the program can change unittest


def test_id(test):
    """Returns the id of a test. For a test of the script that was started, the id begins
    with the script's path and not with __main__."""
    name = test.id()
    if name.startswith("__main__."):
        script = getattr(sys.modules.get("__main__"), "__file__", None) or "__main__"
        stem = os.path.splitext(os.path.relpath(script))[0]
        name = stem.replace(os.sep, ".") + name[len("__main__"):]
    return name


def arrange(suite, plan):
    """Filters and reorders the tests of a suite level by level, so that modules
    and classes stay together."""
    if plan.only is None and plan.seed is None:
        return
    draw = plan.random_keys()

    def level(suite):
        tests = getattr(suite, "_tests", None)
        if not isinstance(tests, list):
            return
        tests[:] = [t for t in tests if t is not None and (hasattr(t, "_tests") or plan.wants(test_id(t)))]
        if plan.seed is not None:
            tests.sort(key=lambda test: draw(id(test)))
        for test in tests:
            level(test)

    level(suite)


def names(suite):
    """Returns the ids of the tests of a suite in order."""
    tests = getattr(suite, "_tests", None)
    if not isinstance(tests, list):
        return [test_id(suite)]
    return [name for test in tests if test is not None for name in names(test)]


def docstring_line(test):
    """Returns the first line of a test's docstring, which unittest's log shows as its name, or None."""
    doc = getattr(test, "_testMethodDoc", None)
    if type(doc) is not str or not doc.strip():
        return None
    return doc.strip().split("\n")[0].strip()[:1000]


class Recorder(object):
    def __init__(self, channel, guard, plan):
        self.channel, self.guard, self.plan = channel, guard, plan
        self.worst, self.count = None, 0
        self.current = None

    def attach(self, result):
        add = {
            "addSuccess": "passed", "addFailure": "failed", "addError": "error", "addSkip": "skipped",
            "addExpectedFailure": "xfailed", "addUnexpectedSuccess": "xpassed",
        }
        own = {}
        for name, status in add.items():
            own[name] = self.outcome(getattr(result, name), status)
        own["startTest"] = self.start(result.startTest)
        own["stopTest"] = self.stop(result.stopTest)
        if hasattr(result, "addSubTest"):
            own["addSubTest"] = self.subtest(result.addSubTest)
        vars(result).update(own)

        def intact():
            for name, fn in own.items():
                if vars(result).get(name) is not fn:
                    return "the test result's %s was replaced" % name

        self.guard.watch(intact)
        return result

    def start(self, then):
        def startTest(test):
            self.current, self.worst = test, None
            self.key = "%d %s" % (self.count, test_id(test))
            self.watch(test)
            self.plan.begin(test_id(test))
            self.channel.tell("report", {"k": "start", "id": test_id(test)})
            return then(test)

        return startTest

    def watch(self, test):
        """Wraps the test method so that the ledger (tracesmith_channel.Ledger)
        learns when it has returned."""
        name = getattr(test, "_testMethodName", "")
        method = getattr(test, name, None)
        code = getattr(plain(method), "__code__", None)
        if code is None or code.co_flags & DEFERRED or isinstance(test, LOAD_FAILURES) or name in vars(test):
            return
        self.channel.tell("expect", self.key, test, plain(method))
        setattr(test, name, wrap_test(self.channel, self.key, test, method))
        call, key = getattr(test, "_callTestMethod", None), self.key
        if call is None:  # before 3.8
            return

        def late(method):
            # 3.12.1 looks the method up before it calls startTest.
            return call(method if hasattr(method, "of_tracesmith") else wrap_test(self.channel, key, test, method))

        late.of_tracesmith = True
        test._callTestMethod = late

    def stop(self, then):
        def stopTest(test):
            self.plan.end(test_id(test), self.worst or "error")
            self.guard.check(everything=False)
            self.count += 1
            self.channel.tell("done", self.key, test_id(test), self.worst or "error", docstring_line(test))
            for name in (getattr(test, "_testMethodName", ""), "_callTestMethod"):
                if hasattr(vars(test).get(name), "of_tracesmith"):
                    delattr(test, name)
            self.current = None
            return then(test)

        return stopTest

    def note(self, status):
        if self.worst is None or RANK.index(status) > RANK.index(self.worst):
            self.worst = status

    def outcome(self, then, status):
        def add(test, *args, **kwargs):
            if self.current is None:  # a fixture of a class or module, outside any test
                if status == "error":
                    self.channel.tell("report", {"k": "collect", "id": test_id(test)})
            elif isinstance(test, LOAD_FAILURES):
                self.channel.tell("report", {"k": "collect", "id": test_id(test)})
                self.note(status)
            else:
                self.note(status)
            return then(test, *args, **kwargs)

        return add

    def subtest(self, then):
        def addSubTest(test, subtest, err):
            if err is not None:
                self.note("failed" if issubclass(err[0], test.failureException) else "error")
            return then(test, subtest, err)

        return addSubTest


LOAD_FAILURES = tuple(
    t for t in (getattr(unittest.loader, n, None) for n in ("_FailedTest", "ModuleImportFailure", "LoadTestsFailure"))
    if isinstance(t, type)
)


class Wrong(unittest.TestCase):
    """Assertions that must fail. If one of them passes, a program has tampered with the runner."""

    def runTest(self):
        self.assertEqual(1, 2)

    def wrong_statement(self):
        raise AssertionError

    def wrong_true(self):
        self.assertTrue(0)

    def wrong_false(self):
        self.assertFalse(1)

    def wrong_in(self):
        self.assertIn(1, [2])

    def wrong_is(self):
        self.assertIs(None, 0)

    def wrong_is_none(self):
        self.assertIsNone(0)

    def wrong_raises(self):
        with self.assertRaises(ValueError):
            pass

    def wrong_almost(self):
        self.assertAlmostEqual(1.0, 1.1)

    def wrong_list(self):
        self.assertListEqual([1], [2])

    def wrong_dict(self):
        self.assertDictEqual({1: 1}, {1: 2})

    def wrong_greater(self):
        self.assertGreater(1, 2)

    def wrong_fail(self):
        self.fail()


class Brief(unittest.TestResult):
    def _exc_info_to_string(self, err, test):
        return ""  # formatting a traceback takes longer than most tests


WRONG = [n for n in vars(Wrong) if n == "runTest" or n.startswith("wrong_")]


def canary(guard):
    """Checks that assertions that must fail still fail."""
    for name in WRONG:
        result = Brief()
        Wrong(name).run(result)
        if len(result.failures) != 1 or result.errors:
            guard.add_finding("a failing assertion (%s) was not seen as a failure" % name)
