"""The private record file: one line per record, each with a MAC over itself and
all records before it, so that an edited, forged, reordered or truncated file is noticed.

The guest, the sandbox's first process, gives a key of its own to each interpreter that
the entrypoint starts, and none to processes that such an interpreter starts. Only two
hash states of the key are kept.
"""
import _socket
import atexit
import hashlib
import json
import os
import sys
import threading
import time
from _json import encode_basestring_ascii as quoted

O_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT


def take(directory, order):
    """Asks the guest for this process's key and returns the order with it, or None without a key."""
    try:
        sock, answer = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM), b""
        try:
            sock.settimeout(30)
            sock.connect("\0" + os.path.basename(directory))
            while True:
                piece = sock.recv(200)
                if not piece:
                    break
                answer += piece
        finally:
            sock.close()
        order, answer = json.loads(order.decode()), answer.split()
        order["process"], order["key"] = int(answer[0]), bytes(bytearray.fromhex(answer[1].decode()))
        return order
    except (OSError, ValueError, IndexError):
        return None


def signer(key):
    """Returns a function that signs with HMAC-SHA256 and holds two hash states instead of the key."""
    block = key.ljust(64, b"\0")
    inner = hashlib.sha256(bytes(bytearray(b ^ 0x36 for b in bytearray(block))))
    outer = hashlib.sha256(bytes(bytearray(b ^ 0x5C for b in bytearray(block))))

    def sign(message):
        a, b = inner.copy(), outer.copy()
        a.update(message)
        b.update(a.digest())
        return b.hexdigest()

    return sign


class Ledger(object):
    """Holds what is known of the tests, and is the only way to the record file.

    A test counts as passed only if its own function was called and returned (ran),
    even if a report says otherwise: plugins can change a report, but not a return.
    The files of the program that are on the stack of a report are recorded.
    """

    KINDS = ("expect", "begin", "returned", "report", "done", "ended", "close", "end", "note")

    def __init__(self, path, sign, process, place):
        self.path, self.sign, self.process, self.place = path, sign, process, place
        self.pid, self.thread = os.getpid(), threading.get_ident()
        self.getpid, self.get_ident, self.getframe = os.getpid, threading.get_ident, sys._getframe
        self.file = sys._getframe().f_code.co_filename
        self.open, self.write, self.close_ = os.open, os.write, os.close
        self.mac, self.number = "", 0
        self.waiting = [{"k": "begin"}]  # records that could not be written yet
        self.noted = set()
        self.expected = {}  # key of a test -> (its object, its function)
        self.ran = set()
        self.clock, self.begun, self.took = getattr(time, "perf_counter", time.time), {}, {}  # of tests' own functions
        self.status = None  # exit status of the runner's session
        self.closed = False  # whether the session has reported all its tests

    def take(self, kind, *what):
        if kind != "note":
            self.witness(kind)
        if kind in self.KINDS:
            getattr(self, kind)(*what)

    def witness(self, kind):
        """Checks who reports: a runner reports from the main thread, with its own code
        on the stack and no program code. Only the end, at exit, has no caller."""
        if self.get_ident() != self.thread:
            self.note("found", "results were reported from a thread")
        frame, no_runner = self.getframe(), kind != "end"
        while frame is not None:
            file = frame.f_code.co_filename
            where = self.place(file)
            if where:
                self.note("seen", ["report", where])
            no_runner = no_runner and file == self.file
            frame = frame.f_back
        if no_runner:
            self.note("found", "results were not reported by the test runner's code")

    def put(self, record):
        self.waiting.append(record)

    def note(self, kind, what):
        key = (kind, str(what))
        if key not in self.noted and len(self.noted) < 100:
            self.noted.add(key)
            self.put({"k": kind, "what": what})

    def report(self, record):
        if self.closed:
            self.note("found", "results were reported after the end of the tests")
        self.put(record)

    def expect(self, key, test, function):
        self.expected.setdefault(key, (test, function))

    def begin(self, key):
        self.ran.discard(key)
        self.begun[key] = self.clock()

    def returned(self, key, test, function):
        then = self.expected.get(key)
        if then is None or then[0] is not test or then[1] is not function:
            self.note("found", "something else ran in place of the test %s" % key)
        self.ran.add(key)
        self.stop(key)

    def stop(self, key):
        if key in self.begun:
            self.took[key] = max(0, int((self.clock() - self.begun.pop(key)) * 1e6))

    def done(self, key, name, status, doc=None):
        if status == "passed" and key in self.expected and key not in self.ran:
            self.note("found", "%s was reported as passed, but did not finish" % name)
        self.stop(key)
        record = {"k": "test", "id": name, "s": status}
        if key in self.took:
            record["us"] = self.took.pop(key)
        if doc:
            record["doc"] = doc
        self.report(record)

    def ended(self, status):
        self.status = status if self.status is None else max(self.status, status)

    def close(self):
        self.closed = True

    def end(self, active):
        self.put({"k": "end", "active": active, "status": self.status})

    def flush(self):
        """Writes the waiting records; one that cannot be written (no descriptor, no stack left) keeps waiting."""
        if self.getpid() != self.pid:  # a child that the program forked reports nothing
            self.waiting = []
        while self.waiting:
            body = "%d %d %s" % (self.process, self.number, text(self.waiting[0]))
            mac = self.sign((self.mac + " " + body).encode())
            fd = self.open(self.path, O_APPEND, 0o600)
            try:
                self.write(fd, (mac + " " + body + "\n").encode())
            finally:
                self.close_(fd)
            self.mac, self.number = mac, self.number + 1
            del self.waiting[0]


def text(value):
    """Returns value as JSON without calling anything that a program could replace."""
    if value is None or value is True or value is False:
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, dict):
        return "{%s}" % ", ".join(["%s: %s" % (quoted(k), text(v)) for k, v in value.items()])
    if isinstance(value, (list, tuple)):
        return "[%s]" % ", ".join([text(v) for v in value])
    return quoted(value) if isinstance(value, str) else "%d" % value


def sealed(ledger):
    """Holds the ledger in the locals of a generator, which closures and attributes do not
    lead to. Yields the exception that a message raised, or None."""
    error = None
    while True:
        message = yield error
        error = None
        try:
            ledger.take(*message)
        except BaseException as e:
            error = e
        try:
            ledger.flush()
        except (MemoryError, OSError, RecursionError):
            pass


class Channel(object):
    """The way of one process's runner to the ledger. The end record is written by the last
    exit handler; a process that avoids its exit handlers has none."""

    def __init__(self, directory, order, guard, place):
        self.active = False  # whether a runner reports here
        ledger = sealed(Ledger(os.path.join(directory, "records"), signer(order.pop("key")), order["process"], place))
        next(ledger)
        self._send, self._late, self._guard = ledger.send, [], guard
        guard.tell = self.tell
        atexit.register(self._end)

    def tell(self, *message):
        """Sends the name of a method of Ledger and its arguments."""
        self._late.append(message)
        while self._late:
            try:
                error = self._send(self._late[0])
            except (StopIteration, ValueError):  # the ledger is busy: called from a thread, a signal or a watched event
                return
            del self._late[0]
            if error is not None:
                raise error

    def _end(self):
        self._guard.check()
        self.tell("end", self.active)
