"""A pytest plugin that writes "outcome node-id" per test to $NODEIDS."""

import os

_outcomes = {}


def pytest_runtest_logreport(report):
    if report.failed or report.nodeid not in _outcomes:
        _outcomes[report.nodeid] = report.outcome


def pytest_sessionfinish():
    with open(os.environ["NODEIDS"], "w") as out:
        for nodeid, outcome in _outcomes.items():
            out.write("{} {}\n".format(outcome, nodeid))
