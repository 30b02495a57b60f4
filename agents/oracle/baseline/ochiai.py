import atexit, dis, math, os, sys, threading

root, report, tests, running, names = os.getcwd(), os.environ.pop("RANKING", ""), [], [], {}

def name(path):
    """The path of a file relative to the workspace, or None if it is not a file of the workspace."""
    if path not in names:
        relative = os.path.relpath(path, root) if path.endswith(".py") else ".."
        outside = relative.startswith("..") or "site-packages" in relative
        names[path] = None if outside else relative
    return names[path]

def is_test(file):
    base = os.path.basename(file)
    return base.startswith("test") or base.endswith("_test.py") or base == "conftest.py" or "tests" in file.split("/")

def call(frame, event, arg):
    file = name(frame.f_code.co_filename)
    if file is None or is_test(file) and (running or not frame.f_code.co_name.startswith("test")):
        return None
    if is_test(file):
        running.append(frame)
        tests.append({"failed": False, "skipped": False, "lines": set()})
        return test
    return line if running else None

def line(frame, event, arg):
    if event == "line" and running:
        code = frame.f_code
        tests[-1]["lines"].add((name(code.co_filename), frame.f_lineno, code.co_firstlineno))
    return line

def test(frame, event, arg):
    if event == "exception":
        tests[-1]["skipped"] = "Skip" in arg[0].__name__
    elif event == "return":
        running.clear()
        last = dis.opname[frame.f_code.co_code[frame.f_lasti]]  # not a return if an exception ends the test
        tests[-1]["failed"] = not (tests[-1]["skipped"] or last.startswith(("RETURN", "YIELD")))
    return test

def rank():
    sys.settrace(None)
    failing = [t["lines"] for t in tests if t["failed"]]
    passing = [t["lines"] for t in tests if not t["failed"]]
    scores, functions = [], set()
    for at in set().union(*failing):
        ef, ep = sum(at in t for t in failing), sum(at in t for t in passing)
        scores.append((-ef / math.sqrt(len(failing) * (ef + ep)), at))
    with open(report, "a") as out:
        for score, (file, number, first) in sorted(scores):
            if (file, first) not in functions and len(functions) < 20:
                functions.add((file, first))
                out.write("%.3f %s:%d\n" % (-score, file, number))

if report:
    atexit.register(rank)
    threading.settrace(call)
    sys.settrace(call)
