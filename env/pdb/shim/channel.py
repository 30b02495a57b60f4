# The debugger inside the sandbox: pdb.Pdb with a private channel to the host.
#
# The files of this folder form one module: they are joined in the order channel, source, breakpoints,
# threads, names, debugger, start, and sent to the interpreter over standard input. It runs on
# Python 3.6 to 3.14.
#
# Commands arrive as lines of base64 JSON on the original standard input; the debugged program gets
# /dev/null there. Each prompt is announced by a frame (see env/guest/framing) with the nonce of the
# command it answers. The frame carries everything the host shows: position, source, breakpoints.
# The host owns the breakpoints; they are mirrored here.
import os
import sys

LOADED, PATH, LIB = set(sys.modules), sys.path[:], os.path.dirname(os.__file__)
if LIB in PATH:  # import the debugger's modules from the standard library, even if the program shadows them
    del sys.path[:PATH.index(LIB)]

import binascii
import fcntl
import json
import select

FRESH = "\x1b]7717;\x07"  # tells the host to begin a new line if the program left one unfinished
PIECE = 3072  # characters of base64: with its envelope still one atomic write to a pipe


def duplicate(fd):
    """Duplicates fd to a high number, where programs that close all descriptors rarely look."""
    for low in (8000, 4000, 900, 200, 10):
        try:
            return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, low)
        except OSError:
            pass
    return os.dup(fd)


class Output:
    """The original standard output, even if the program closes or replaces fd 1."""

    encoding = "utf-8"

    def __init__(self, fd):
        self.fd = fd

    def write(self, text):
        data = text.encode("utf-8", "backslashreplace")
        while data:
            try:
                data = data[os.write(self.fd, data):]
            except BlockingIOError:  # the program made the shared pipe non-blocking
                ready = select.poll()  # not select(): it takes no descriptor above 1023
                ready.register(self.fd, select.POLLOUT)
                ready.poll()
        return len(text)

    def flush(self):
        pass

    def isatty(self):
        return False


class EmptyInput:
    """A standard input that is at its end."""

    encoding = "utf-8"

    def readline(self, *_):
        return ""

    read = readline


class Channel:
    """Sends frames to the host and receives its messages."""

    def __init__(self):
        self.input = duplicate(0)
        self.output = Output(duplicate(1))
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
        self.pending = b""
        self.nonce = ""
        self.seq = 0
        self.pid = os.getpid()

    def receive(self):
        while b"\n" not in self.pending:
            os.set_blocking(self.input, True)  # the program may have changed it
            chunk = os.read(self.input, 1 << 16)
            if not chunk:
                os._exit(0)  # the host is gone
            self.pending += chunk
        line, self.pending = self.pending.split(b"\n", 1)
        message = json.loads(binascii.a2b_base64(line).decode("utf-8"))
        self.nonce = message["nonce"]
        return message

    def settle(self):
        """Flushes the program's output, so that the debugger's begins after it on a new line."""
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except Exception:
                pass
        self.output.write(FRESH)

    def send(self, body):
        self.settle()
        self.seq += 1
        data = binascii.b2a_base64(json.dumps(body).encode("ascii"), newline=False).decode("ascii")
        pieces = [data[i:i + PIECE] for i in range(0, len(data), PIECE)]
        for i, piece in enumerate(pieces):
            self.output.write("\x1b]7717;%s;%d;%d;%d;%d;%s\x07" % (
                self.nonce, self.seq, self.pid, i + 1, len(pieces), piece))
