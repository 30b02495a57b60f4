"""The private record file: one line per record, each with a MAC over itself and
all before it, so that an edited, forged, reordered or cut file is noticed.

A line is "<mac> <process> <number> <json>". The key is read from a file that is
gone (or replaced by its successor, when the command line may start several
interpreters) before program code runs; only two hash states are kept of it.
"""
import atexit
import hashlib
import json
import os
import sys
import threading

O_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT


def take(directory):
    """Claims the channel for this process; None when it is spent."""
    path = os.path.join(directory, "key")
    try:
        with open(path) as f:
            order = json.load(f)
        key = order["key"] = bytes(bytearray.fromhex(order["key"]))
        os.unlink(path)
        if order["more"] > 0:
            heir = dict(order, key=hashlib.sha256(b"next" + key).hexdigest(),
                        process=order["process"] + 1, more=order["more"] - 1)
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            os.write(fd, json.dumps(heir).encode())
            os.close(fd)
        return order
    except (OSError, ValueError, KeyError):
        return None


def signer(key):
    """HMAC-SHA256 with the key reduced to two hash states."""
    block = key.ljust(64, b"\0")
    inner = hashlib.sha256(bytes(bytearray(b ^ 0x36 for b in bytearray(block))))
    outer = hashlib.sha256(bytes(bytearray(b ^ 0x5C for b in bytearray(block))))

    def sign(message):
        a, b = inner.copy(), outer.copy()
        a.update(message)
        b.update(a.digest())
        return b.hexdigest()

    return sign


class Channel(object):
    """The records of one process. The end is written last of all at exit: a
    process that avoids its exit handlers has none."""

    def __init__(self, directory, order, guard):
        self.active = False  # a runner reports here
        self.closed = False  # it has reported all
        self.status = None  # exit status of the runner's session
        self._write = writer(os.path.join(directory, "records"), signer(order.pop("key")), order["process"], guard)
        self._guard, self._thread = guard, threading.get_ident()
        guard.tell = self._write
        self._write({"k": "begin"})
        atexit.register(self._end)

    def put(self, record):
        """Writes a record for a runner. Whoever else calls this leaves a trace:
        runners report from the main thread, with no program code above them."""
        if self.closed:
            self._guard.find("results were reported after the end of the tests")
        if threading.get_ident() != self._thread:
            self._guard.find("results were reported from a thread")
        self._guard.witness(sys._getframe())
        self._write(record)

    def _end(self):
        self._guard.check()
        self._guard.witness(sys._getframe())
        self._write({"k": "end", "active": self.active, "status": self.status})


def writer(path, sign, process, guard):
    pid = os.getpid()
    getpid, open_, write, close, dumps = os.getpid, os.open, os.write, os.close, json.dumps
    state = ["", 0]

    def put(record):
        if getpid() != pid:  # a fork of the program's: not ours to report
            return
        body = "%d %d %s" % (process, state[1], dumps(record, sort_keys=True))
        mac = sign((state[0] + " " + body).encode())
        state[0], state[1] = mac, state[1] + 1
        guard.writing = True
        fd = open_(path, O_APPEND, 0o600)
        try:
            write(fd, (mac + " " + body + "\n").encode())
        finally:
            close(fd)
            guard.writing = False

    return put
