"""Manages child processes that run tests: reads their records, and forks the passes of a run from
one interpreter that has imported and collected the tests."""
import gc
import json
import os
import select
import signal
import time
import warnings

MAX_BYTES = 32 << 20  # of the records of one child
NOT_A_PASS = ("failed", "error", "xpassed")


def limit_cpu(seconds):
    """Makes the kernel end this process after some seconds of CPU time; 0 is no limit."""
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, seconds)


def receive(fd, child, deadline):
    """Reads a child's records from fd until the record of kind "end", the end of the pipe, the
    deadline or MAX_BYTES, then kills the child's process group. Returns the records, whether the
    deadline passed or limit_cpu ended the child, and the CPU seconds of the child. These include
    descendants that their parents waited for, but not those that were killed or left running."""
    data, timed_out = b"", False
    while not has_end(data) and len(data) < MAX_BYTES:
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
    status, used = os.wait4(child, 0)[1:]
    timed_out = timed_out or os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGPROF
    return [r for r in map(parse_record, data.split(b"\n")[:-1]) if r], timed_out, used.ru_utime + used.ru_stime


def parse_record(line):
    """Parses a line as a record. Returns None for other lines, which the tests may have written."""
    try:
        record = json.loads(line.decode())
    except ValueError:
        return None
    return record if isinstance(record, dict) else None


def has_end(data):
    """Returns whether data ends with the record of kind "end". Waiting for the end of the pipe is
    not enough, because a process that the tests left behind may keep it open."""
    start = data.rfind(b"\n", 0, -1) + 1
    return data.endswith(b"\n") and data[start:start + 12] == b'{"k": "end",'


def run_passes(session, run):
    """Runs each pass of a session in its own child process, in order. A pass with "follows" runs only
    if the first pass reached its end, and tests failed in it, but no more than its "max_failures". When the time for all
    passes is used up, the remaining passes do not run. run runs the tests of a session."""
    gc.collect()
    if hasattr(gc, "freeze"):
        gc.freeze()  # Python 3.7 and later: the children copy less memory
    failed = []
    for n, request in enumerate(session.passes):
        if request.get("follows") and not 0 < len(failed) <= session.passes[0].get("max_failures", 0):
            continue
        remaining = session.deadline - time.monotonic()
        if remaining <= 0:
            break
        records, timed_out = run_pass(session, n, request, failed, run, min(request["timeout"], remaining))
        end = [r for r in records if r.get("k") == "end"]
        records = [r for r in records if r.get("k") not in ("end", "pass")]
        for r in records:
            session.put(r)
        session.put({"k": "pass", "n": n, "timed_out": timed_out, "finished": bool(end), "code": end[0].get("code") if end else 1})
        if n == 0 and end:
            failed = failed_tests(records)  # for the passes that follow


def failed_tests(records):
    """Returns the tests that failed, sorted, except that the first failure with a description comes first."""
    failed = sorted(r.get("id") for r in records if r.get("k") == "test" and r.get("s") in NOT_A_PASS)
    described = [r.get("id") for r in records if r.get("k") == "failure"][:1]
    return described + [name for name in failed if name not in described]


def run_pass(session, n, request, failed, run, timeout):
    """Runs one pass in a child process. Returns its records and whether it timed out."""
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
            if request.get("failing"):
                request = dict(request, only=failed[:request["failing"]])
            session.configure(request, n)
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
