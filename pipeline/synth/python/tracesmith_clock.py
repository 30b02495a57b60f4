"""Finds tests that compare times. How they end depends on how busy the machine is."""
import dis
import os
import types

CLOCKS = {
    "timeit", "default_timer", "perf_counter", "perf_counter_ns", "process_time", "process_time_ns", "thread_time",
    "monotonic", "monotonic_ns",
}
COMPARISONS = {"assertLess", "assertLessEqual", "assertGreater", "assertGreaterEqual", "assertAlmostEqual", "approx"}


def compares_times(function):
    """Tells whether the code of a function reads a clock, itself or through a helper, and compares numbers, other than
    for equality."""
    while getattr(function, "__wrapped__", None) is not None:
        function = function.__wrapped__
    code, reads, compares = getattr(function, "__code__", None), False, False
    for i in instructions(code):
        if i.opname.startswith("LOAD_"):
            reads = reads or i.opname == "LOAD_GLOBAL" and reads_clock(helper(function, i.argval))
            compares = compares or i.argval in COMPARISONS
        elif i.opname == "COMPARE_OP":
            compares = compares or "<" in str(i.argval) or ">" in str(i.argval)
    return compares and (reads or reads_clock(code))


def helper(function, name):
    """Returns the code of a global function that is defined in the folder of a test function, or None."""
    found = getattr(function, "__globals__", {}).get(name)
    if not isinstance(found, types.FunctionType):
        return None
    folders = [os.path.dirname(f.__code__.co_filename) for f in (function, found)]
    return found.__code__ if folders[0] == folders[1] else None


def reads_clock(code):
    """Tells whether code reads a clock."""
    before = None
    for i in instructions(code):
        if i.opname.startswith("LOAD_") and (i.argval in CLOCKS or i.argval == "time" == before):
            return True
        before = i.argval
    return False


def instructions(code):
    """Yields the instructions of code, and of the functions in it."""
    if code is None:
        return
    for i in dis.get_instructions(code):
        yield i
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            for i in instructions(const):
                yield i
