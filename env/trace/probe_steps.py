"""Records the steps of one test. newProbe joins this file with probe.py, which has the other imports."""
import select
import signal

ATOMIC = frozenset([type(None), bool, int, float, complex, str, bytes])  # the text of such an object never changes
HASHED = frozenset([bool, int, float, str])  # hash(None) is an address before Python 3.12
DATA = ATOMIC | {list, tuple, dict, set, frozenset}
MUTABLE = object()  # stands for all other objects, which must not be kept alive


class Steps(object):
    """Records the calls, lines, returns and exceptions of one test, each with the local
    variables that changed. It records config["size"] events completely, beginning with the
    event number config["first"], or fewer, if it has formatted config["values"] values before. After them, it records calls, returns and exceptions of the
    outer frames, and a sample of the lines, each with all variables of its frame and a digest of
    the simple variables of all functions that have returned. If there are too many of them, or if
    it has formatted config["values"] values again, it keeps fewer levels of the stack and fewer lines.

    If config has the key "rehearse", a forked child runs the test first and records the same,
    so that values that are never the same in two runs can be recognized."""

    REST = 8000  # the number of calls, returns and exceptions, and of lines, after the first config["size"] events

    def __init__(self, config, out, place):
        self.out, self.place, self.config = out, place, config
        self.first, self.size, self.max_events = config.get("first", 0), config.get("size", 0), config["events"]
        self.max_values = config.get("values", 1 << 60)  # a number and not a time, so that every run records the same
        self.names, self.formatter, self.busy = Names(), Formatter(), False
        self.events = backend(self.handle, place, "call", "line", "return", "exception")
        self.ident, self.thread = threading.get_ident, None
        self.classes, self.lines, self.globals = {}, {}, {}  # by id

    def begin(self, name):
        self.rehearsal = rehearse(self.out, self.config["rehearse"]) if "rehearse" in self.config else None
        self.thread, self.stack, self.count, self.serial, self.threads = self.ident(), [], 0, 0, False
        self.records, self.executed, self.failures, self.codes, self.hits = [], set(), [], {}, {}
        self.calls, self.samples, self.depth, self.stride, self.digest = [], [], 1 << 30, 64, 0
        self.events.on()
        self.events.restart()

    def end(self, name, status):
        self.events.off()
        self.thread = None
        rest = sorted(self.calls + self.samples, key=lambda record: record[1])
        cut = self.count >= self.max_events
        self.out.write([["run", sys.version.split()[0], "rehearsal" if self.rehearsal else "test"]])
        self.out.write(self.records)
        self.out.write(rest)
        self.out.write([
            ["hits", [[file, "", line, n] for (file, line), n in self.hits.items()]],
            ["failure", self.failures[-50:]],
            ["end", self.count, sorted(self.executed)[:5000], cut, self.depth, self.stride, self.threads],
        ])
        if self.rehearsal:
            self.rehearsal.end(self.out)

    def handle(self, kind, file, frame, arg):
        if self.busy or self.ident() != self.thread:
            self.threads = self.threads or not self.busy
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
        stack = self.stack
        if kind == "call" or not stack or stack[-1][0] is not frame and not any(s[0] is frame for s in stack):
            self.serial += 1
            stack.append([frame, self.serial, {}, -9, None])  # at the end, its last event and the line that it began
        while stack[-1][0] is not frame:  # frames that ended without a return event
            stack.pop()
        depth = len(stack)
        record = self.first <= n < self.first + self.size
        if not record and n >= self.first:
            record = n % self.stride == 0 if kind == "line" else depth <= self.depth
            if kind == "return":
                self.digest = hash((self.digest, arg if type(arg) in HASHED else 0,
                                    tuple([v for v in list(frame.f_locals.values())[:20] if type(v) in HASHED])))
        if kind == "line" and not record:
            if n < self.first:
                place = (file, frame.f_lineno)
                self.hits[place] = self.hits.get(place, 0) + 1
            return
        name = self.name_of(frame.f_code, file)
        if kind == "exception":
            self.record_exception(n, file, frame, name, arg, depth)
        if record:
            self.record(n, kind, file, frame, name, arg, depth)
        if kind == "return":
            stack.pop()

    def record(self, n, kind, file, frame, name, arg, depth):
        state = self.stack[-1]
        last, within = state[2], n < self.first + self.size
        quiet = n == state[3] + 1 and (state[4] is None and kind == "line" or self.harmless(frame.f_code, state[4]))
        if not within and kind == "line":
            kind, last = "sample", {}
        elif kind != "exception":
            state[3], state[4] = n, frame.f_lineno
            if kind == "call":  # a generator continues within a line
                state[4] = 0 if frame.f_code.co_flags & 0x2A0 else None
        record = [kind, n, file, name, frame.f_lineno, depth, state[1], self.changes(kind, frame, arg, last, quiet)]
        costly = self.formatter.count > self.max_values
        if costly:
            self.formatter.count = 0
        if within:
            self.records.append(record)
            if costly:
                self.size = n + 1 - self.first
            return
        record.append(self.digest)
        (self.samples if kind == "sample" else self.calls).append(record)
        if len(self.samples) > self.REST or costly:
            self.stride *= 2
            self.samples = [r for r in self.samples if r[1] % self.stride == 0]
        if len(self.calls) > self.REST or costly and self.calls:
            depths = sorted(r[5] for r in self.calls)
            self.depth = depths[len(depths) // 2] - 1
            self.calls = [r for r in self.calls if r[5] <= self.depth]

    def name_of(self, code, file):
        """Returns the qualified name of a function, and records its variables the first time."""
        known = self.codes.get(id(code))
        if known is None:
            name = self.names.qualified(code)
            known = self.codes[id(code)] = (code, name)  # the object is kept, because its id is the key
            if file + ":" + name not in self.executed:
                self.executed.add(file + ":" + name)
                arguments = code.co_argcount + code.co_kwonlyargcount
                arguments += bool(code.co_flags & 4) + bool(code.co_flags & 8)  # *args and **kwargs
                variables = code.co_varnames + code.co_cellvars + code.co_freevars
                self.records.append(["function", file + ":" + name, variables[:200], arguments, self.globals_of(code)])
        return known[1]

    def record_exception(self, n, file, frame, name, error, depth):
        """Records the frames through which the latest exceptions passed."""
        if self.failures and self.failures[-1][1] == id(error):
            self.failures[-1][3].append([file, name, frame.f_lineno, depth])
            return
        if len(self.failures) >= 100:
            del self.failures[:50]
        self.failures.append([n, id(error), typename(type(error)), [[file, name, frame.f_lineno, depth]]])

    def harmless(self, code, line):
        """Returns whether a line only sets local variables, so that no object has changed after it."""
        lines = self.lines.get(id(code))
        if lines is None:
            lines = self.lines[id(code)] = harmless_lines(code)
        return line in lines

    def changes(self, kind, frame, arg, last, quiet):
        """Returns the texts of the variables that differ from last, and updates last. If quiet is
        true, no object has changed since."""
        values, now, out = [], {}, {}
        for name, value in list(frame.f_locals.items())[:200]:
            if quiet and name in last and last[name][2] == id(value) and type(value) not in ITERATORS:
                now[name] = last[name]
                if name in ("self", "cls"):
                    now.update(item for item in last.items() if item[0].startswith(name + "."))
                continue
            d = instance_dict(value) if name == "self" else None
            if name == "cls" and isinstance(value, type):
                d = {}
            if d is None:
                values.append((name, value, None, id(value)))
            else:
                text = self.formatter.content(value) or typename(value if name == "cls" else type(value))
                values.append((name, MUTABLE, text, id(value)))
                values.extend((name + "." + k, v, None, 0) for k, v in list(d.items())[:100] if type(k) is str)
                classes, attributes = self.class_attributes(value if name == "cls" else type(value))
                for k in attributes:
                    owner = None if k in d else next((c for c in classes if k in vars_of(c)), None)
                    if owner is not None:
                        values.append((name + "." + k, vars_of(owner)[k], None, 0))
        for name in self.globals_of(frame.f_code):
            if kind == "line":  # most are constants, so they are looked at when functions begin and end
                now.update([(name, last[name])] if name in last else [])
            elif name in frame.f_globals and self.is_data(frame.f_globals[name]):
                values.append((name, frame.f_globals[name], None, 0))
        for name, value, text, number in values:
            atomic, before = type(value) in ATOMIC, last.get(name)
            if atomic and before is not None and before[0] is value:
                now[name] = before  # formatting takes most of the time
                continue
            if text is None:
                text = self.formatter.text(value)
            now[name] = (value if atomic else MUTABLE, text, number)
            if before is None or before[1] != text:
                out[name] = text
        out.update((k, None) for k in last if k not in now)
        last.clear()
        last.update(now)
        if kind == "return":
            out["<exit>" if arg is UNWOUND else "<return>"] = "exception" if arg is UNWOUND else self.formatter.text(arg)
        elif kind == "exception":
            out["<exception>"] = self.formatter.text(arg)
        return out

    def globals_of(self, code):
        """Returns the names of the globals of the module that a function uses."""
        known = self.globals.get(id(code))
        if known is None:  # a class body and a module have no CO_NEWLOCALS
            used = {i.argval for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "STORE_GLOBAL")} if code.co_flags & 2 else ()
            known = self.globals[id(code)] = (code, tuple(sorted(used))[:40])
        return known[1]

    def is_data(self, value):
        return type(value) in DATA or bool(self.class_attributes(type(value))[0])

    def class_attributes(self, cls):
        """Returns a class and its bases, as far as the program defines them, and the names of their data attributes."""
        known = self.classes.get(id(cls))
        if known is None:
            own = []
            for c in type.__getattribute__(cls, "__mro__"):
                file = getattr(sys.modules.get(type.__getattribute__(c, "__module__")), "__file__", None)
                if type(file) is str and self.place(file) is not None:
                    own.append(c)
            names = [k for c in own for k, v in vars_of(c).items() if type(v) in DATA and k[:2] != "__"]
            known = self.classes[id(cls)] = (own, sorted(set(names))[:20], cls)
        return known[:2]


HARMLESS = frozenset(
    number for name, number in dis.opmap.items()
    if name.startswith(("LOAD_", "STORE_FAST", "POP_TOP", "POP_JUMP", "JUMP_", "COMPARE_OP", "IS_OP", "UNARY_", "BUILD_", "FORMAT_",
                        "COPY", "SWAP", "ROT_", "DUP_", "BINARY_")) and name not in ("BINARY_SUBSCR", "LOAD_BUILD_CLASS")
    or name in ("RETURN_VALUE", "RETURN_CONST", "RESUME", "NOP", "CACHE", "EXTENDED_ARG", "PUSH_NULL", "TO_BOOL", "NOT_TAKEN",
                "POP_BLOCK", "GET_ITER", "FOR_ITER", "END_FOR", "POP_ITER", "UNPACK_SEQUENCE", "MAKE_FUNCTION", "STORE_DEREF"))
BINARY_OP = dis.opmap.get("BINARY_OP")
HARMLESS_OPERATORS = range(13)  # arguments of BINARY_OP: not in place, not a subscript


def harmless_lines(code):
    """Returns the lines of a function that contain no instruction that may change an object."""
    starts, raw, good, bad = list(dis.findlinestarts(code)), code.co_code, set(), set()
    for (start, line), end in zip(starts, [s for s, _ in starts[1:]] + [len(raw)]):
        operators = [] if BINARY_OP is None else [raw[i + 1] for i in range(start, end, 2) if raw[i] == BINARY_OP]
        harmless = HARMLESS.issuperset(raw[start:end:2]) and all(o in HARMLESS_OPERATORS for o in operators)
        (good if harmless else bad).add(line)
    return good - bad


def can_rehearse():
    return sys.version_info >= (3, 8) and threading.active_count() == 1 and hasattr(os, "fork")


def rehearse(out, seconds):
    """Forks a child that runs the test first, and waits for it. Returns None in the parent, and sets
    out.left to whether the child has left a file behind."""
    if not can_rehearse():
        return None
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        return Rehearsal(writer, out.path)
    os.close(writer)
    finished = select.select([reader], [], [], seconds)[0] and os.read(reader, 1)
    os.close(reader)
    if not finished:
        os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    out.left = finished != b"1"
    if os.path.exists(out.path):
        out.remaining -= os.path.getsize(out.path)
        with out.open(out.path, "a") as f:
            f.write("\n")  # the child may have written a part of a line
    return None


class Rehearsal(object):
    """A child that runs the test first. Its values differ from those of the parent if they depend
    on random numbers or on addresses of objects. It reports no result of the test, as the hooks do
    so only in the process that they started in. Its last record names a file that it has left
    behind, because the test of the parent could find it."""

    PATHS = {"open": 1, "os.mkdir": 1, "os.rename": 2, "os.link": 2, "os.symlink": 2, "os.remove": 1, "os.rmdir": 1,
             "os.truncate": 1, "sqlite3.connect": 1}  # audit events and the number of arguments that are paths

    def __init__(self, writer, own):
        self.writer, self.own, self.existed = writer, own, {}
        counts = [(size, ord(os.urandom(1))) for size in range(0, 480, 16)]
        self.ballast = [bytes(size) for size, count in counts for _ in range(count)]  # moves later objects
        for module in ("random", "numpy.random"):
            try:
                sys.modules[module].seed()
            except Exception:
                pass
        sys.addaudithook(self.audit)

    def audit(self, event, args):
        if event == "open" and not (type(args[2]) is int and args[2] & (os.O_WRONLY | os.O_RDWR)):
            return
        for path in args[:self.PATHS.get(event, 0)]:
            if type(path) is str:
                path = os.path.abspath(path)
                if path not in self.existed:
                    self.existed[path] = os.path.exists(path)

    def left(self):
        """Returns a file that the test has created, changed or deleted, or None. Directories with
        names that are unique, such as those of tempfile, do not matter."""
        import tempfile

        unique = tuple(os.path.join(tempfile.gettempdir(), prefix) for prefix in ("tmp", "pytest-of-"))
        for path, existed in sorted(self.existed.items()):
            exists = os.path.exists(path)
            passing = path == self.own or path.startswith(unique + ("/dev/", "/proc/")) or "/__pycache__/" in path or "/.pytest_cache" in path
            if (existed or exists) and not passing and not (exists and existed and os.path.isdir(path)):
                return path
        return None

    def end(self, out):
        left = self.left()
        out.write([["left", left]])
        os.write(self.writer, b"1" if left is None else b"0")
        os._exit(0)
