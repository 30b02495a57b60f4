"""Child processes that run tests: reading their records, and forking several runs from one
interpreter that has imported and collected the tests once."""
import gc
import json
import os
import select
import signal
import time
import warnings

MAX_RECORDS = 32 << 20
NOT_A_PASS = ("failed", "error", "xpassed")


def receive(fd, child, deadline):
    """Reads a child's records until the last one or the deadline, then kills the child's process
    group. Returns the records, whether the deadline passed, and the CPU seconds of the child and
    its descendants."""
    data, timed_out = b"", False
    while not ended(data) and len(data) < MAX_RECORDS:
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            timed_out = True
            break
        ready, _, _ = select.select([fd], [], [], remaining)
        if ready:
            chunk = os.read(fd, 1 << 16)
            if not chunk:
                break
            data += chunk
    for kill in (os.killpg, os.kill):  # the child may not have created its group yet
        try:
            kill(child, signal.SIGKILL)
        except OSError:
            pass
    used = os.wait4(child, 0)[2]
    return [r for r in map(record, data.split(b"\n")[:-1]) if r], timed_out, used.ru_utime + used.ru_stime


def record(line):
    """Parses a line as a record; returns None for lines that the tests wrote themselves."""
    try:
        found = json.loads(line.decode())
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def ended(data):
    """Whether the last record has arrived. The end of the pipe does not tell: a process
    that the tests left behind may hold it open."""
    start = data.rfind(b"\n", 0, -1) + 1
    return data.endswith(b"\n") and data[start:start + 12] == b'{"k": "end",'


def run_passes(session, run):
    """Runs each pass of a session in a child of its own, in order. A pass that follows the first
    one runs only if tests failed in that one, but not too many. When the time of all passes is
    over, the rest is left out."""
    gc.collect()
    if hasattr(gc, "freeze"):
        gc.freeze()  # Python 3.7 and later: the children copy less memory
    failed = []
    for n, one in enumerate(session.passes):
        if one.get("follows") and not 0 < len(failed) <= session.passes[0].get("most", 0):
            continue
        left = session.deadline - time.monotonic()
        if left <= 0:
            break
        records, timed_out = run_pass(session, n, one, failed, run, min(one["timeout"], left))
        end = [r for r in records if r.get("k") == "end"]
        records = [r for r in records if r.get("k") not in ("end", "pass")]
        for r in records:
            session.put(r)
        session.put({"k": "pass", "n": n, "timed_out": timed_out, "whole": bool(end), "code": end[0].get("code") if end else 1})
        if n == 0:
            failed = failures(records)


def failures(records):
    """Returns the tests that failed, the first one that is described before the others."""
    failed = sorted(r.get("id") for r in records if r.get("k") == "test" and r.get("s") in NOT_A_PASS)
    described = [r.get("id") for r in records if r.get("k") == "failure"][:1]
    return described + [name for name in failed if name not in described]


def run_pass(session, n, one, failed, run, timeout):
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a project may turn the warning about threads into an error
        child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(reading)
            os.setpgid(0, 0)
            session.out = writing
            if one.get("failing"):
                one = dict(one, only=failed[:one["failing"]])
            session.configure(one, n)
            code = run(session)
        except SystemExit as e:
            code = e.code if isinstance(e.code, int) else 1
        except BaseException as e:
            session.put({"k": "broke", "what": "%s: %s" % (type(e).__name__, e)})
            os._exit(0)
        try:
            session.finish(code)
        finally:
            os._exit(0)
    os.close(writing)
    try:
        return receive(reading, child, time.monotonic() + timeout)[:2]
    finally:
        os.close(reading)
