"""Finds tests that compare times. How they end depends on how busy the machine is."""
import dis
import types

CLOCKS = {
    "timeit", "default_timer", "perf_counter", "perf_counter_ns", "process_time", "process_time_ns", "thread_time",
    "monotonic", "monotonic_ns",
}
COMPARISONS = {"assertLess", "assertLessEqual", "assertGreater", "assertGreaterEqual", "assertAlmostEqual", "approx"}


def compares_times(function):
    """Tells whether the code of a function reads a clock and compares numbers, other than for equality."""
    while getattr(function, "__wrapped__", None) is not None:
        function = function.__wrapped__
    reads, compares, before = False, False, None
    for i in instructions(getattr(function, "__code__", None)):
        if i.opname.startswith("LOAD_"):
            reads = reads or i.argval in CLOCKS or i.argval == "time" == before
            compares = compares or i.argval in COMPARISONS
        elif i.opname == "COMPARE_OP":
            compares = compares or "<" in str(i.argval) or ">" in str(i.argval)
        before = i.argval
    return reads and compares


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
