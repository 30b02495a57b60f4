"""Traces the tests of one run from inside the process: either the lines that each test
executes, or every step of one test. The probe traces only files of the workspace. It never
calls code of the program: it formats values from their built-in parts and does not call
their __repr__. It runs on Python 3.6 to 3.14.

The output has one JSON array per line. The first item is the kind of the record.
"""
import atexit
import dis
import hashlib
import json
import sys
import threading


def start(config, path, relative):
    """Starts a probe that writes to path. relative returns the path of a file relative to the
    workspace, or None if it is outside."""
    tracer = {"cover": Cover, "steps": Steps}[config["mode"]]

    def file_of(code):
        file = relative(code.co_filename)
        return None if file is None or file[:1] == "<" else file

    return tracer(config, Output(path, config["limit"]), file_of)


class Output(object):
    """Appends records to a file, and ["cut"] instead of the first record beyond the limit in bytes."""

    def __init__(self, path, limit):
        self.path, self.remaining = path, limit
        self.open = open  # the program may replace the built-in function later

    def write(self, records):
        if self.remaining < 0:
            return
        with self.open(self.path, "a") as f:
            for record in records:
                line = json.dumps(record, separators=(",", ":")) + "\n"
                self.remaining -= len(line)
                if self.remaining < 0:
                    f.write('["cut"]\n')
                    return
                f.write(line)


class Settrace(object):
    """Passes events of sys.settrace to handle(kind, file, frame, arg)."""

    def __init__(self, handle, file_of, kinds):
        self.handle, self.file_of, self.kinds = handle, file_of, kinds

    def on(self):
        threading.settrace(self.call)
        sys.settrace(self.call)

    def off(self):
        sys.settrace(None)
        threading.settrace(None)

    def restart(self):
        pass

    def call(self, frame, event, arg):
        file = self.file_of(frame.f_code)
        if file is None:
            return None
        if "call" in self.kinds:
            self.handle("call", file, frame, arg)

        def step(frame, event, arg):
            if event in self.kinds and not (event == "exception" and arg[0] in (StopIteration, GeneratorExit)):
                self.handle(event, file, frame, arg[1] if event == "exception" else arg)
            return step

        if "line" not in self.kinds and hasattr(frame, "f_trace_lines"):  # 3.7 and later
            frame.f_trace_lines = False
        return step


class SettraceLines(object):
    """Passes each new line of a test to handle_line(file, line) with sys.settrace. It stops tracing
    functions whose lines have all been executed, and handles a line that runs again with a single call."""

    def __init__(self, handle_line, file_of):
        self.handle_line, self.file_of = handle_line, file_of
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
                file = self.file_of(code)
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

    def __init__(self, handle, file_of, kinds):
        self.m = m = sys.monitoring
        self.tool = next(i for i in (4, 3, 5, 2, 1, 0) if m.get_tool(i) is None)
        m.use_tool_id(self.tool, "tracesmith")
        self.mask = 0
        for name, kind in (("PY_START", "call"), ("PY_RESUME", "call"), ("LINE", "line"), ("PY_RETURN", "return"),
                           ("PY_YIELD", "return"), ("PY_UNWIND", "return"), ("RAISE", "exception")):
            if kind in kinds:
                event = getattr(m.events, name)
                self.mask |= event
                m.register_callback(self.tool, event, self.callback(name, kind, handle, file_of))

    def callback(self, name, kind, handle, file_of):
        off, local, frame = self.m.DISABLE, name not in ("PY_UNWIND", "RAISE"), sys._getframe

        def on_event(code, at, arg=None):
            file = file_of(code)
            if file is None:
                return off if local else None
            done = handle(kind, file, frame(1), None if name == "PY_UNWIND" else arg)
            return off if done and local else None

        return on_event

    def on(self):
        self.m.set_events(self.tool, self.mask)

    def off(self):
        self.m.set_events(self.tool, 0)

    def restart(self):
        self.m.restart_events()


def backend(handle, file_of, *kinds):
    return (Monitoring if hasattr(sys, "monitoring") else Settrace)(handle, file_of, kinds)


class Cover(object):
    """Records the lines that each test executes. Lines executed outside of tests have the test
    name ""."""

    def __init__(self, config, out, file_of):
        self.out, self.budget = out, config["events"]
        self.outside = self.lines = {}
        self.remaining = self.budget
        if hasattr(sys, "monitoring"):
            self.events = Monitoring(self.handle, file_of, ("call", "line"))
        else:
            self.events = SettraceLines(self.handle_line, file_of)
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

    def end(self, name):
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


class Names(object):
    """Finds the qualified names of code objects. Code objects have none before Python 3.11, so
    Names compiles the source again and looks for a function with the same name and line."""

    def __init__(self):
        self.cache, self.files = {}, {}

    def qualified(self, code):
        name = self.cache.get(code)
        if name is None:
            name = getattr(code, "co_qualname", None) or self.find(code)
            self.cache[code] = name
        return name

    def find(self, code):
        if code.co_filename not in self.files:
            places = self.files[code.co_filename] = {}
            try:
                with open(code.co_filename, "rb") as f:
                    self.collect(compile(f.read(), code.co_filename, "exec", dont_inherit=True), "", places)
            except (OSError, SyntaxError, ValueError):
                pass
        return self.files[code.co_filename].get((code.co_name, code.co_firstlineno), code.co_name)

    def collect(self, outer, prefix, places):
        for const in outer.co_consts:
            if hasattr(const, "co_consts"):
                name = prefix + const.co_name
                places[const.co_name, const.co_firstlineno] = name
                function = const.co_flags & 2  # CO_NEWLOCALS, which a class body does not have
                optimized = const.co_flags & 1
                self.collect(const, name + (".<locals>." if function and optimized else "."), places)


def typename(cls):
    module, name = type.__getattribute__(cls, "__module__"), type.__getattribute__(cls, "__qualname__")
    return name if module == "builtins" else "%s.%s" % (module, name)


def instance_dict(value):
    """Returns the __dict__ of an instance, or None."""
    try:
        d = object.__getattribute__(value, "__dict__")
    except Exception:
        return None
    return d if type(d) is dict else None


class Formatter(object):
    """Formats values as text of bounded length."""

    NODES, ITEMS, DEPTH, TEXT = 200, 50, 3, 160

    def text(self, value):
        self.remaining = self.NODES
        try:
            text = self.value(value, self.DEPTH)
        except Exception as error:  # a structure that changes while it is read
            text = "<%s>" % type(error).__name__
        if len(text) > self.TEXT:
            text = text[:self.TEXT] + "#" + hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
        return text

    def value(self, v, depth):
        self.remaining -= 1
        if self.remaining < 0:
            return "..."
        cls = type(v)
        if v is None or cls in (bool, float, complex):
            return repr(v)
        if cls is int:
            return repr(v) if v.bit_length() < 1000 else "int of %d bits, %d" % (v.bit_length(), v % 1000003)
        for base in (str, bytes, bytearray):
            if issubclass(cls, base):
                size = base.__len__(v)
                return base.__repr__(base.__getitem__(v, slice(0, 2000))) + (" of %d" % size if size > 2000 else "")
        for base in (list, tuple, set, frozenset, dict):
            if issubclass(cls, base):
                return self.items(v, cls, base, depth)
        if issubclass(cls, type):
            return "class " + typename(v)
        if cls.__module__ == "builtins":  # functions, modules, iterators, ranges
            if cls is range or cls is slice:
                return repr(v)
            name = getattr(v, "__qualname__", None) or getattr(v, "__name__", None)
            return "%s %s" % (cls.__name__, name if type(name) is str else "")
        d = instance_dict(v)
        if d is None or depth == 0:
            return typename(cls)
        parts = ["%s=%s" % (k, self.value(x, depth - 1)) for k, x in list(d.items())[:self.ITEMS] if type(k) is str]
        return "%s(%s)" % (typename(cls), ", ".join(parts))

    def items(self, v, cls, base, depth):
        size = base.__len__(v)
        name = "" if cls in (list, tuple, set, dict) else typename(cls) + " "
        if depth == 0:
            return "%s%s of %d" % (name, base.__name__, size)
        parts = []
        each = dict.items(v) if base is dict else base.__iter__(v)
        for x in each:
            if len(parts) == self.ITEMS or self.remaining < 0:
                parts.append("... %d" % size)
                break
            if base is dict:
                parts.append(self.value(x[0], depth - 1) + ": " + self.value(x[1], depth - 1))
            else:
                parts.append(self.value(x, depth - 1))
        if base in (set, frozenset):
            parts.sort()
        left, right = {list: "[]", tuple: "()"}.get(base, "{}")
        return name + left + ", ".join(parts) + right


ATOMIC = frozenset([type(None), bool, int, float, complex, str, bytes])  # the text of such an object never changes
MUTABLE = object()  # stands for all other objects, which must not be kept alive


class Steps(object):
    """Records the calls, lines, returns and exceptions of one test, each with the local
    variables that changed. It writes config["size"] events, beginning with the event number
    config["first"]."""

    def __init__(self, config, out, file_of):
        self.out, self.first, self.size, self.max_events = out, config["first"], config["size"], config["events"]
        self.names, self.formatter, self.busy = Names(), Formatter(), False
        self.events = backend(self.handle, file_of, "call", "line", "return", "exception")
        self.ident, self.thread = threading.get_ident, None

    def begin(self, name):
        self.thread, self.stack, self.count, self.serial = self.ident(), [], 0, 0
        self.records, self.executed, self.failures = [], {}, []
        self.events.on()
        self.events.restart()

    def end(self, name):
        self.events.off()
        self.thread = None
        self.out.write(self.records)
        executed, cut = sorted(self.executed)[:5000], self.count >= self.max_events
        self.out.write([["failure", self.failures[-50:]], ["end", self.count, executed, cut]])

    def handle(self, kind, file, frame, arg):
        if self.busy or self.ident() != self.thread:
            return
        self.busy = True
        try:
            self.step(kind, file, frame, arg)
        finally:
            self.busy = False

    def step(self, kind, file, frame, arg):
        n, self.count = self.count, self.count + 1
        if self.count >= self.max_events:
            self.events.off()
        if kind == "call" or not self.stack or self.stack[-1][0] is not frame and not any(s[0] is frame for s in self.stack):
            self.serial += 1
            self.stack.append([frame, self.serial, {}])
        while self.stack[-1][0] is not frame:  # frames that ended without a return event
            self.stack.pop()
        if kind == "line" and n >= self.first + self.size:
            return
        depth, (_, serial, last) = len(self.stack), self.stack[-1]
        name = self.names.qualified(frame.f_code)
        if file + ":" + name not in self.executed:
            self.executed[file + ":" + name] = True
            code = frame.f_code
            variables = code.co_varnames + code.co_cellvars + code.co_freevars
            self.records.append(["function", file + ":" + name, variables[:200]])
        if kind == "exception":
            self.record_exception(n, file, frame, name, arg, depth)
        if self.first <= n < self.first + self.size:
            changes = self.changes(kind, frame, arg, last)
            self.records.append([kind, n, file, name, frame.f_lineno, depth, serial, changes])
        if kind == "return":
            self.stack.pop()

    def record_exception(self, n, file, frame, name, error, depth):
        """Records the frames through which the latest exceptions passed."""
        if self.failures and self.failures[-1][1] == id(error):
            self.failures[-1][3].append([file, name, frame.f_lineno, depth])
            return
        if len(self.failures) >= 100:
            del self.failures[:50]
        self.failures.append([n, id(error), typename(type(error)), [[file, name, frame.f_lineno, depth]]])

    def changes(self, kind, frame, arg, last):
        values, now, out = [], {}, {}
        for name, value in list(frame.f_locals.items())[:200]:
            d = instance_dict(value) if name == "self" else None
            if d is None:
                values.append((name, value, None))
            else:
                values.append((name, MUTABLE, typename(type(value))))
                values.extend(("self." + k, v, None) for k, v in list(d.items())[:100] if type(k) is str)
        for name, value, text in values:
            atomic, before = type(value) in ATOMIC, last.get(name)
            if atomic and before is not None and before[0] is value:
                now[name] = before  # formatting takes most of the time
                continue
            if text is None:
                text = self.formatter.text(value)
            now[name] = (value if atomic else MUTABLE, text)
            if before is None or before[1] != text:
                out[name] = text
        out.update((k, None) for k in last if k not in now)
        last.clear()
        last.update(now)
        if kind == "return":
            out["<return>"] = self.formatter.text(arg)
        elif kind == "exception":
            out["<exception>"] = typename(type(arg))
        return out
