# Finding breakpoints with sys.monitoring (Python 3.12 and later): only lines with a breakpoint slow the program down.
# The trace function is then only for steps, and only in the stepped thread.
import _thread
import sys

MONITORING = getattr(sys, "monitoring", None)
COPIES_LOCALS = sys.version_info[:2] == (3, 12)  # callbacks get a copy of the local names
if COPIES_LOCALS:
    try:
        import ctypes
        copy_back = ctypes.pythonapi["PyFrame_LocalsToFast"]
        copy_back.argtypes = ctypes.py_object, ctypes.c_int
    except ImportError:
        MONITORING = None


class Monitoring:
    """The part of Shim that finds breakpoints with sys.monitoring."""

    def register(self):
        # Leaves the numbers that the documentation reserves for debuggers, coverage and profilers to the program.
        self.tool = next(n for n in (4, 3, 5, 2, 1, 0) if MONITORING.get_tool(n) is None)
        MONITORING.use_tool_id(self.tool, "tracesmith")
        names = MONITORING.events
        self.events = names.LINE | names.JUMP | names.PY_START | names.PY_RESUME
        for event, callback in ((names.LINE, self.on_line), (names.JUMP, self.on_jump),
                                (names.PY_START, self.on_start), (names.PY_RESUME, self.on_start)):
            MONITORING.register_callback(self.tool, event, callback)

    def monitor(self):
        """Makes each line of the program call on_line again, including those that were disabled."""
        MONITORING.set_events(self.tool, self.events)
        MONITORING.restart_events()

    def on_start(self, code, offset):
        # From 3.13 on, the line at which a function starts calls on_line only if its start has an event too.
        return None if sys._getframe(1).f_lineno in self.breaks_in(code.co_filename) else MONITORING.DISABLE

    def on_line(self, code, line):
        if line not in self.breaks_in(code.co_filename):
            return MONITORING.DISABLE
        return self.reach(sys._getframe(1))

    def on_jump(self, code, start, end):
        # A loop within one line calls on_line only once. Trace functions get an event each time, and so does reach.
        if end <= start and code_line(code, end) == code_line(code, start) in self.breaks_in(code.co_filename):
            return self.reach(sys._getframe(1))
        return MONITORING.DISABLE

    def reach(self, frame):
        """Stops at a breakpoint of the current line, if it is in effect and the trace function does not see the line."""
        here, tracer = _thread.get_ident(), GETTRACE()
        if tracer is not None and (tracer != self.trace_dispatch or frame.f_trace is not None):
            return
        if here == self.ended or here == self.thread and self.state != RUNNING:  # the debugger's prompt runs this code
            return
        if COPIES_LOCALS:
            frame.f_locals  # updates the copy
        self.dispatch(frame, "line", None)
        if COPIES_LOCALS:
            copy_back(frame, 1)
        if here == self.thread and self.stepping():
            self.trace()

    def gettrace(self):
        """Replaces sys.gettrace for the program, which may look there for a debugger."""
        return GETTRACE() or self.trace_dispatch


def code_line(code, offset):
    return next(line for start, end, line in code.co_lines() if start <= offset < end)
