# The part of the debugger inside the sandbox: pdb.Pdb with a channel to the host, the debugger's Go
# process outside the sandbox.
#
# The files of this folder form one module. The host sends them to the interpreter over standard input,
# in the order channel, source, breakpoints, threads, monitoring, names, debugger, start. They run on Python 3.6
# to 3.14.
#
# Commands arrive as lines of base64-encoded JSON on the original standard input. The debugged program
# gets /dev/null as its standard input. At each prompt, the debugger sends a frame (see
# env/guest/framing) with the nonce of the command that it answers. The frame contains everything that
# the host shows: position, source and breakpoints. The host owns the breakpoints and sends a copy.
import os
import sys

LOADED, PATH, LIB = set(sys.modules), sys.path[:], os.path.dirname(os.__file__)
if LIB in PATH:  # import the debugger's modules from the standard library, even if the program shadows them
    del sys.path[:PATH.index(LIB)]

import binascii
import fcntl
import json
import select

LINE_START_MARK = "\x1b]7717;\x07"  # the host starts a new line here if the program's output ended within a line
CHUNK_SIZE = 3072  # characters of base64; small enough that writing one with its header to a pipe is atomic


def duplicate(fd):
    """Duplicates fd to a high number, because programs that close all descriptors often stop at a lower one."""
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
                ready = select.poll()  # select() does not support descriptors above 1023
                ready.register(self.fd, select.POLLOUT)
                ready.poll()
        return len(text)

    def flush(self):
        pass

    def isatty(self):
        return False


class EmptyInput:
    """A standard input without any content."""

    encoding = "utf-8"

    def readline(self, *_):
        return ""

    read = readline


class Channel:
    """Sends messages to the host and receives its messages. A message to the host is a frame of env/guest/framing."""

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
        """Flushes the program's output and marks where the debugger's output begins."""
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except Exception:
                pass
        self.output.write(LINE_START_MARK)

    def send(self, body):
        self.settle()
        self.seq += 1
        data = binascii.b2a_base64(json.dumps(body).encode("ascii"), newline=False).decode("ascii")
        chunks = [data[i:i + CHUNK_SIZE] for i in range(0, len(data), CHUNK_SIZE)]
        for i, chunk in enumerate(chunks):
            self.output.write("\x1b]7717;%s;%d;%d;%d;%d;%s\x07" % (
                self.nonce, self.seq, self.pid, i + 1, len(chunks), chunk))
