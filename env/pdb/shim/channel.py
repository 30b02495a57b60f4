# The debugger inside the sandbox: pdb.Pdb with a private way in and out.
#
# The files of this folder are one module, put together in the order channel,
# source, breakpoints, threads, names, debugger, start, and sent to the interpreter over standard
# input. It runs on Python 3.6 to 3.14.
#
# Commands arrive as lines of base64 JSON on what was standard input; the
# debugged program gets /dev/null there. Each prompt is announced by a frame
# (see env/guest/framing) with the nonce of the command it answers, carrying everything the other side shows: position,
# source, breakpoints. Breakpoints are kept on the other side and mirrored here.
import os
import sys

LOADED, PATH, LIB = set(sys.modules), sys.path[:], os.path.dirname(os.__file__)
if LIB in PATH:  # the debugger's modules are Python's, whatever the program has under their names
    del sys.path[:PATH.index(LIB)]

import binascii
import fcntl
import json
import select

FRESH = "\x1b]7717;\x07"  # the other side begins a line here, if the program left one unfinished
PIECE = 3072  # characters of base64; with what goes around it one atomic write to a pipe


def private(fd):
    """Duplicates fd to where a program that closes "its" descriptors rarely looks."""
    for low in (8000, 4000, 900, 200, 10):
        try:
            return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, low)
        except OSError:
            pass
    return os.dup(fd)


class Output:
    """The original standard output, whatever the program does to fd 1."""

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


class Nothing:
    """Standard input of whatever asks: at its end."""

    encoding = "utf-8"

    def readline(self, *_):
        return ""

    read = readline


class Channel:
    """Frames out, messages in."""

    def __init__(self):
        self.input = private(0)
        self.output = Output(private(1))
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
        self.pending = b""
        self.nonce = ""
        self.seq = 0
        self.pid = os.getpid()

    def receive(self):
        while b"\n" not in self.pending:
            os.set_blocking(self.input, True)  # whatever the program made of it
            chunk = os.read(self.input, 1 << 16)
            if not chunk:
                os._exit(0)  # nobody is left to talk to
            self.pending += chunk
        line, self.pending = self.pending.split(b"\n", 1)
        message = json.loads(binascii.a2b_base64(line).decode("utf-8"))
        self.nonce = message["nonce"]
        return message

    def settle(self):
        """Has what the program wrote stand before what the debugger says, on a line of its own."""
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
