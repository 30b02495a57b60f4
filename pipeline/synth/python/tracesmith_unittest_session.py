"""Runs python -m unittest and records each test, like the plugin in tracesmith_session does for pytest."""
import sys
import unittest
import unittest.loader
import unittest.main

import tracesmith_children

__unittest = True

RANK = ["passed", "skipped", "xfailed", "xpassed", "failed", "error"]
NOT_LOADED = tuple(
    t for t in (getattr(unittest.loader, n, None) for n in ("_FailedTest", "ModuleImportFailure", "LoadTestsFailure"))
    if isinstance(t, type)
)


def run(session):
    class Result(unittest.TextTestResult):
        def startTest(self, test):
            self.worst = None
            session.begin(test.id())
            super(Result, self).startTest(test)

        def stopTest(self, test):
            super(Result, self).stopTest(test)
            function = getattr(test, getattr(test, "_testMethodName", ""), None)
            if session.done(test.id(), self.worst or "error", function):
                self.stop()

        def note(self, test, status, err=None):
            if isinstance(test, NOT_LOADED) or not hasattr(test, "_testMethodName"):
                session.put({"k": "collect", "id": test.id(), "text": str(err and err[1])[-4000:]})
            if RANK.index(status) > RANK.index(getattr(self, "worst", None) or "passed") or self.worst is None:
                self.worst = status
            if err is not None and not isinstance(test, NOT_LOADED):
                session.failure(test.id(), *err)

        def addSuccess(self, test):
            self.note(test, "passed")
            super(Result, self).addSuccess(test)

        def addFailure(self, test, err):
            self.note(test, "failed", err)
            super(Result, self).addFailure(test, err)

        def addError(self, test, err):
            if not hasattr(self, "worst"):
                self.worst = None
            self.note(test, "error", err)
            super(Result, self).addError(test, err)

        def addSkip(self, test, reason):
            self.note(test, "skipped")
            super(Result, self).addSkip(test, reason)

        def addExpectedFailure(self, test, err):
            self.note(test, "xfailed")
            super(Result, self).addExpectedFailure(test, err)

        def addUnexpectedSuccess(self, test):
            self.note(test, "xpassed")
            super(Result, self).addUnexpectedSuccess(test)

        def addSubTest(self, test, subtest, err):
            if err is not None:
                kind = "failed" if issubclass(err[0], test.failureException) else "error"
                if RANK.index(kind) > RANK.index(self.worst or "passed"):
                    self.worst = kind
                session.failure(test.id(), *err)
            super(Result, self).addSubTest(test, subtest, err)

    class Runner(unittest.TextTestRunner):
        resultclass = Result

        def run(self, test):
            arrange(session, test)
            if not session.passes:  # the tests run once
                return super(Runner, self).run(test)
            tracesmith_children.run_passes(session, lambda _: self.run_pass(test))
            return self._makeResult()

        def run_pass(self, test):
            arrange(session, test)
            return 0 if super(Runner, self).run(test).wasSuccessful() else 1

    sys.argv = ["python -m unittest"] + session.argv
    program = unittest.main(module=None, argv=sys.argv, testRunner=Runner, exit=False)
    return 0 if program.result.wasSuccessful() else 1


def arrange(session, suite):
    """Drops and reorders the tests of a suite level by level, so that modules and
    classes stay together."""
    draw = session.draws()

    def arrange_level(suite, path):
        """Arranges one suite. Returns True if none of its tests is in session.first."""
        tests = getattr(suite, "_tests", None)
        if not isinstance(tests, list):
            return suite.id() not in session.first
        ranks = {}
        if session.only is not None:
            tests[:] = [t for t in tests if t is not None and (hasattr(t, "_tests") or t.id() in session.only)]
        for n, test in enumerate(tests):
            late = arrange_level(test, path + (n,))
            order = draw(path + (n,)) if session.shuffle else n
            ranks[id(test)] = (late, -order if session.shuffle < 0 else order)  # see Session.draws
        tests.sort(key=lambda test: ranks[id(test)])
        return not tests or all(late for late, _ in ranks.values())

    arrange_level(suite, ())
