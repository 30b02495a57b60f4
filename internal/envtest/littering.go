package envtest

import (
	"fmt"
	"strings"
)

// marks is a Python module with a function mark(name, number). mark leaves files, System V
// and POSIX IPC objects, sockets and a process behind. It fails if those of an earlier call
// with the same arguments are still there.
const marks = `import ctypes
import os
import socket
import subprocess
import tempfile

LIBC = ctypes.CDLL(None, use_errno=True)
PLACES = sorted(set(map(os.path.realpath, (tempfile.gettempdir(), os.path.expanduser("~"), os.getcwd(), "/dev/shm", "/var/tmp"))))
SMALL = (ctypes.c_long * 8)(0, 1, 16)  # a message queue that uses little of the user's limit


def running(name):
    return subprocess.call(["sh", "-c", "grep -qs \"[m]ark-$0\" /proc/[0-9]*/cmdline", name]) == 0


def mark(name, number):
    for place in PLACES:
        os.mkdir(os.path.join(place, ".mark-" + name))
    assert LIBC.shmget(7000 + number, 4096, 0) < 0
    assert LIBC.shmget(7000 + number, 4096, 0o1600) >= 0
    assert LIBC.semget(7000 + number, 1, 0) < 0
    assert LIBC.semget(7000 + number, 1, 0o1600) >= 0
    queue = ("/mark-" + name).encode()
    assert LIBC.mq_open(queue, os.O_RDWR) < 0
    assert LIBC.mq_open(queue, os.O_RDWR | os.O_CREAT, 0o600, SMALL) >= 0
    assert "mark-" + name not in open("/proc/net/unix").read()
    server = socket.socket()
    server.bind(("127.0.0.1", 20000 + number))  # refused while an old connection is remembered
    server.listen(1)
    client = socket.create_connection(server.getsockname())
    server.accept()[0].close()
    client.close()
    assert not running(name)
    held = socket.socket(socket.AF_UNIX)
    held.bind("\0mark-" + name)
    subprocess.Popen(["bash", "-c", "(sleep 600; true mark-%s) & disown" % name], start_new_session=True,
                     pass_fds=[held.fileno()], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
`

// Littering returns a Python project, as contents by path, with n functions and a pytest
// test for each. Every test leaves files, IPC objects, sockets and a process behind, and
// fails if it finds those of an earlier run. The tests therefore pass a second time only if
// the code that runs them cleans up in between.
func Littering(n int) map[string]string {
	var code, tests strings.Builder
	tests.WriteString("import pytest\nimport sums\nfrom marks import mark\n\n")
	for i := range n {
		fmt.Fprintf(&code, "def f%d(x, y):\n    if x > %d:\n        return x - y\n    total = x + %d\n    return total * y\n\n\n", i, i, i+1)
		fmt.Fprintf(&tests, "\ndef test_f%d():\n    mark(\"f%d-end\", %d)\n    assert sums.f%d(%d, 3) == %d\n    assert sums.f%d(%d, 2) == %d\n\n",
			i, i, i, i, i+1, i+1-3, i, i, (2*i+1)*2)
	}
	return map[string]string{"sums.py": code.String(), "tests/marks.py": marks, "tests/test_sums.py": tests.String()}
}
