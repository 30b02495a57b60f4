"""Traces the tests of one run from inside the process: either the lines that each test
executes, or the steps of one test. The probe traces only files of the workspace. It calls no
code of the program, except to copy values for experiments: it formats values from their
built-in parts and does not call their __repr__. It runs on Python 3.6 to 3.14.

The output has one JSON array per line. The first item is the kind of the record.

The module consists of several files, which newProbe (probe.go) joins.
"""
import atexit
import dis
import json
import os
import sys
import threading


def start(config, path, relative):
    """Starts a probe that writes to path. relative returns the path of a file relative to the
    workspace, or None if it is outside."""
    tracer = globals()[config["mode"].capitalize()]  # Cover, Steps, Capture or Substitute

    def place(path):
        file = relative(path)
        return None if file is None or file[:1] == "<" else file

    return tracer(config, Output(path, config["limit"]), place)


class Output(object):
    """Appends records to a file, and ["cut"] instead of the first record beyond the limit in bytes."""

    def __init__(self, path, limit):
        self.path, self.remaining, self.left = path, limit, False
        self.encode = json.JSONEncoder(separators=(",", ":")).encode
        self.open = open  # the program may replace the built-in function later

    def write(self, records):
        if self.remaining < 0:
            return
        with self.open(self.path, "a") as f:
            for record in records:
                line = self.encode(record) + "\n"
                self.remaining -= len(line)
                if self.remaining < 0:
                    f.write('["cut"]\n')
                    return
                f.write(line)


UNWOUND = object()  # the value with which a function returns if an exception ends it


class Settrace(object):
    """Passes events of sys.settrace to handle(kind, file, frame, arg)."""

    def __init__(self, handle, place, kinds):
        self.handle, self.place, self.kinds, self.returns = handle, place, kinds, Returns()

    def on(self):
        threading.settrace(self.call)
        sys.settrace(self.call)

    def off(self):
        sys.settrace(None)
        threading.settrace(None)

    def restart(self):
        pass

    def call(self, frame, event, arg):
        file = self.place(frame.f_code.co_filename)
        if file is None:
            return None
        if "call" in self.kinds:
            self.handle("call", file, frame, arg)

        def step(frame, event, arg):
            if event in self.kinds and not (event == "exception" and arg[0] in (StopIteration, GeneratorExit)):
                if event == "exception":
                    arg = arg[1]
                elif event == "return" and arg is None and not self.returns.at(frame):
                    arg = UNWOUND
                self.handle(event, file, frame, arg)
            return step

        if "line" not in self.kinds and hasattr(frame, "f_trace_lines"):  # 3.7 and later
            frame.f_trace_lines = False
        return step


class Returns(object):
    """Finds out whether a frame ends with an instruction that returns or yields a value."""

    NAMES = ("RETURN_VALUE", "RETURN_CONST", "RETURN_GENERATOR", "YIELD_VALUE", "YIELD_FROM", "SEND")

    def __init__(self):
        self.opcodes, self.codes = {dis.opmap[name] for name in self.NAMES if name in dis.opmap}, {}

    def at(self, frame):
        known = self.codes.get(id(frame.f_code))
        if known is None:  # the object is kept, because its id is the key
            known = self.codes[id(frame.f_code)] = (frame.f_code, frame.f_code.co_code)
        at, code = frame.f_lasti, known[1]
        # Until 3.10, a frame that waits in yield from is one instruction before it.
        return at >= 0 and code[at] in self.opcodes or code[at + 2:at + 3] == YIELD_FROM


YIELD_FROM = bytes([dis.opmap["YIELD_FROM"]]) if "YIELD_FROM" in dis.opmap else None


class SettraceLines(object):
    """Passes each new line of a test to handle_line(file, line) with sys.settrace. It stops tracing
    functions whose lines have all been executed, and handles a line that runs again with a single call."""

    def __init__(self, handle_line, place):
        self.handle_line, self.place = handle_line, place
        self.functions = {}  # id of a code object -> the object, which keeps the id valid, its file and its lines
        self.tracers = {}  # id of a code object -> its trace function and the lines that have not been executed yet
        self.outside = set()  # names of files outside the workspace

    on, off = Settrace.on, Settrace.off

    def restart(self):
        self.tracers = {}

    def call(self, frame, event, arg):
        code = frame.f_code
        if code.co_filename in self.outside:
            return None
        key, tracers = id(code), self.tracers  # restart may replace them in another thread
        if key not in tracers:
            known = self.functions.get(key)
            if known is None:
                file = self.place(code.co_filename)
                if file is None:
                    self.outside.add(code.co_filename)
                    return None
                known = self.functions[key] = (code, file, lines_of(code))
            tracers[key] = self.tracer(known[1], set(known[2]))
        trace, remaining = tracers[key]
        return trace if remaining else None

    def tracer(self, file, remaining):
        handle, seen, stoppable = self.handle_line, set(), sys.version_info >= (3, 7)

        def trace(frame, event, arg):
            if event == "line" and frame.f_lineno not in seen:
                line = frame.f_lineno
                seen.add(line)
                remaining.discard(line)
                handle(file, line)
                if not remaining and stoppable:
                    frame.f_trace_lines = False
            return trace

        return trace, remaining


def lines_of(code):
    """Returns the lines of a code object that line events can report."""
    lines = {line for _, line in dis.findlinestarts(code) if line}
    body = lines - {code.co_firstlineno}  # starting a function reports no line event
    return body or lines


class Monitoring(object):
    """Passes events of sys.monitoring (Python 3.12 and later) to handle(kind, file, frame, arg).
    If handle returns True, the event is switched off at that place until restart."""

    def __init__(self, handle, place, kinds):
        self.m = m = sys.monitoring
        self.tool = next(i for i in (4, 3, 5, 2, 1, 0) if m.get_tool(i) is None)
        m.use_tool_id(self.tool, "tracesmith")
        self.mask = 0
        for name, kind in (("PY_START", "call"), ("PY_RESUME", "call"), ("LINE", "line"), ("PY_RETURN", "return"),
                           ("PY_YIELD", "return"), ("PY_UNWIND", "return"), ("RAISE", "exception")):
            if kind in kinds:
                event = getattr(m.events, name)
                self.mask |= event
                m.register_callback(self.tool, event, self.callback(name, kind, handle, place))

    def callback(self, name, kind, handle, place):
        off, local, frame = self.m.DISABLE, name not in ("PY_UNWIND", "RAISE"), sys._getframe

        def on_event(code, at, arg=None):
            file = place(code.co_filename)
            if file is None:
                return off if local else None
            done = handle(kind, file, frame(1), UNWOUND if name == "PY_UNWIND" else arg)
            return off if done and local else None

        return on_event

    def on(self):
        self.m.set_events(self.tool, self.mask)

    def off(self):
        self.m.set_events(self.tool, 0)

    def restart(self):
        self.m.restart_events()


def backend(handle, place, *kinds):
    return (Monitoring if hasattr(sys, "monitoring") else Settrace)(handle, place, kinds)


class Cover(object):
    """Records the lines that each test executes. Lines executed outside of tests have the test
    name ""."""

    def __init__(self, config, out, place):
        self.out, self.budget = out, config["events"]
        self.outside = self.lines = {}
        self.remaining = self.budget
        if hasattr(sys, "monitoring"):
            self.events = Monitoring(self.handle, place, ("call", "line"))
        else:
            self.events = SettraceLines(self.handle_line, place)
        self.events.on()
        atexit.register(self.close)

    def handle(self, kind, file, frame, arg):
        first = frame.f_code.co_firstlineno
        if kind == "line":
            self.handle_line(file, frame.f_lineno)
        elif lines_of(frame.f_code) == {first}:  # Python 3.13 reports no line of a function on one line
            self.handle_line(file, first)
        return True

    def handle_line(self, file, line):
        self.remaining -= 1
        if self.remaining < 0:
            self.events.off()
        lines = self.lines.get(file)
        if lines is None:
            lines = self.lines[file] = set()
        lines.add(line)

    def begin(self, name):
        self.lines, self.remaining = {}, self.budget
        self.events.on()
        self.events.restart()

    def end(self, name, status):
        self.flush(name, self.lines)
        self.lines = self.outside
        self.remaining = self.budget
        self.events.on()
        self.events.restart()

    def close(self):
        self.events.off()
        self.flush("", self.outside)

    def flush(self, name, lines):
        found = [[file, ranges(seen)] for file, seen in sorted(lines.items())]
        self.out.write([["test", name, found, self.remaining < 0]])


def ranges(lines):
    out = []
    for line in sorted(lines):
        if out and out[-1][1] == line - 1:
            out[-1][1] = line
        else:
            out.append([line, line])
    return out
