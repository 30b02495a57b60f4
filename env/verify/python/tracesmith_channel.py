"""Writes the file of test results. Each line is a record with a MAC over the record and
all records before it, so that the verifier detects an edited, forged, reordered or
truncated file.

The guest, the first process of the sandbox, gives a different key to each interpreter
that the entrypoint starts, and none to processes that such an interpreter starts. The
hooks do not keep the key, only two hash states computed from it.
"""
import _socket
import atexit
import json
import os
import sys
import threading
import time
from _json import encode_basestring_ascii as quote

try:  # hashlib would load OpenSSL, which takes longer than many tests
    from _sha2 import sha256  # from 3.12 on
except ImportError:
    try:
        from _sha256 import sha256
    except ImportError:
        from hashlib import sha256

O_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT


def request_key(directory, config):
    """Asks the guest for this process's key. Returns the parsed configuration with the key, or None without a key."""
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
        config, answer = json.loads(config.decode()), answer.split()
        config["process"], config["key"] = int(answer[0]), bytes(bytearray.fromhex(answer[1].decode()))
        return config
    except (OSError, ValueError, IndexError):
        return None


def signer(key):
    """Returns a function that signs with HMAC-SHA256. It keeps two hash states and not the key."""
    block = key.ljust(64, b"\0")
    inner = sha256(bytes(bytearray(b ^ 0x36 for b in bytearray(block))))
    outer = sha256(bytes(bytearray(b ^ 0x5C for b in bytearray(block))))

    def sign(message):
        a, b = inner.copy(), outer.copy()
        a.update(message)
        b.update(a.digest())
        return b.hexdigest()

    return sign


class Ledger(object):
    """Keeps the state of the tests. Only the ledger can write to the record file.

    A test counts as passed only if the test function was called and returned (ran),
    even if a report says that it passed, because plugins can change reports. The ledger
    also records which files of the program are on the stack when results are reported.
    """

    KINDS = ("expect", "begin", "returned", "report", "done", "ended", "close", "end", "note")

    def __init__(self, path, sign, process, workspace_path):
        self.path, self.sign, self.process, self.workspace_path = path, sign, process, workspace_path
        self.pid, self.thread = os.getpid(), threading.get_ident()
        self.getpid, self.get_ident, self.getframe = os.getpid, threading.get_ident, sys._getframe
        self.file = sys._getframe().f_code.co_filename
        self.open, self.write, self.close_ = os.open, os.write, os.close
        self.mac, self.number = "", 0
        self.pending = [{"k": "begin"}]  # records that could not be written yet
        self.noted = set()
        self.expected = {}  # key of a test -> (its object, its function)
        self.ran = set()  # keys of tests whose functions have returned
        self.clock = getattr(time, "perf_counter", time.time)
        self.started, self.took = {}, {}  # times of test functions
        self.status = None  # exit status of the runner's session
        self.closed = False  # whether the session has ended, so that no more results may come

    def handle(self, kind, *what):
        if kind != "note":
            self.check_caller(kind)
        if kind in self.KINDS:
            getattr(self, kind)(*what)

    def check_caller(self, kind):
        """Checks where a message comes from. A test runner reports from the main thread. The
        stack then contains code of the runner and no code of the program. Only the message
        "end" has no caller, because an exit handler sends it."""
        if self.get_ident() != self.thread:
            self.note("found", "results were reported from a thread")
        frame, missing_runner = self.getframe(), kind != "end"
        while frame is not None:
            file = frame.f_code.co_filename
            where = self.workspace_path(file)
            if where:
                self.note("seen", ["report", where])
            missing_runner = missing_runner and file == self.file
            frame = frame.f_back
        if missing_runner:
            self.note("found", "results were not reported by the test runner's code")

    def put(self, record):
        self.pending.append(record)

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
        self.started[key] = self.clock()

    def returned(self, key, test, function):
        then = self.expected.get(key)
        if then is None or then[0] is not test or then[1] is not function:
            self.note("found", "something else ran in place of the test %s" % key)
        self.ran.add(key)
        self.stop(key)

    def stop(self, key):
        if key in self.started:
            self.took[key] = max(0, int((self.clock() - self.started.pop(key)) * 1e6))

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
        """Writes the pending records. If writing fails (no descriptor or stack is left), they stay pending."""
        if self.getpid() != self.pid:  # a child that the program forked reports nothing
            self.pending = []
        while self.pending:
            body = "%d %d %s" % (self.process, self.number, to_json(self.pending[0]))
            mac = self.sign((self.mac + " " + body).encode())
            fd = self.open(self.path, O_APPEND, 0o600)
            try:
                self.write(fd, (mac + " " + body + "\n").encode())
            finally:
                self.close_(fd)
            self.mac, self.number = mac, self.number + 1
            del self.pending[0]


def to_json(value):
    """Returns value as JSON. Calls no function that a program could replace."""
    if value is None or value is True or value is False:
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, dict):
        return "{%s}" % ", ".join(["%s: %s" % (quote(k), to_json(v)) for k, v in value.items()])
    if isinstance(value, (list, tuple)):
        return "[%s]" % ", ".join([to_json(v) for v in value])
    return quote(value) if isinstance(value, str) else "%d" % value


def hide_ledger(ledger):
    """Keeps the ledger in the local variables of a generator, where it cannot be reached
    through closures and attributes. Yields the exception that a message raised, or None."""
    error = None
    while True:
        message = yield error
        error = None
        try:
            ledger.handle(*message)
        except BaseException as e:
            error = e
        try:
            ledger.flush()
        except (MemoryError, OSError, RecursionError):
            pass


class Channel(object):
    """Passes messages of the runner to the ledger. The last exit handler writes the record
    "end", so the record is missing if a process ends without running its exit handlers."""

    def __init__(self, directory, config, guard, workspace_path):
        self.active = False  # whether a test runner uses this channel
        records, sign = os.path.join(directory, "records"), signer(config.pop("key"))
        ledger = hide_ledger(Ledger(records, sign, config["process"], workspace_path))
        next(ledger)
        self._send, self._pending, self._guard = ledger.send, [], guard
        guard.tell = self.tell
        atexit.register(self._end)

    def tell(self, *message):
        """Sends the name of a method of Ledger and its arguments."""
        self._pending.append(message)
        while self._pending:
            try:
                error = self._send(self._pending[0])
            except (StopIteration, ValueError):
                return  # the ledger is in use: this is another thread, a signal or a watched event
            del self._pending[0]
            if error is not None:
                raise error

    def _end(self):
        self._guard.check()
        self.tell("end", self.active)
