"""Runs a project's tests once, in a child process.

The request is one JSON object on the first line of standard input. The results go to
standard output as a line of JSON. The caller then ends everything that the run started
and sends a second line; the answer is the list of files that the run left in the tree.
Nothing of the project is imported in this process.
"""
import json
import os
import stat
import sys
import time

import tracesmith_children
import tracesmith_session

MAX_LOG = 64 << 10  # bytes kept of a run's output, head and tail together
OLD = 1000000000  # modification time of the healthy tree's files, by which their cached bytecode stays valid


def entries(root):
    """Yields (path, entry, stat) of everything under root that can be listed."""
    todo = [""]
    while todo:
        below = todo.pop()
        try:
            found = list(os.scandir(os.path.join(root, below)))
        except OSError:
            continue
        for entry in found:
            path = os.path.join(below, entry.name)
            try:
                info = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            yield path, entry, info
            if stat.S_ISDIR(info.st_mode):
                todo.append(path)


def set_times(root, changed):
    """Gives the healthy tree's files one modification time and the changed files another."""
    for path, entry, info in entries(root):
        if stat.S_ISREG(info.st_mode):
            when = OLD + (path in changed)
            os.utime(entry.path, (when, when))


def snapshot(root):
    """Returns path -> what identifies the state of the entry."""
    seen = {}
    for path, entry, info in entries(root):
        if stat.S_ISDIR(info.st_mode):
            seen[path] = (info.st_mode,)
        elif stat.S_ISLNK(info.st_mode):
            seen[path] = (info.st_mode, os.readlink(entry.path))
        else:
            seen[path] = (info.st_mode, info.st_size, info.st_mtime_ns)
    return seen


def ignored(path):
    """Whether a path is a cache that test runs commonly leave behind."""
    parts = path.split(os.sep)
    return any(p in ("__pycache__", ".pytest_cache", ".hypothesis", ".mypy_cache", ".coverage") for p in parts) or path.endswith((".pyc", ".pyo"))


def differences(before, after):
    """Returns the paths that a run has created, changed or removed."""
    return sorted(p for p in set(before) | set(after) if before.get(p) != after.get(p) and not ignored(p))


def read_log(path):
    """Returns a run's output; of a long one, head and tail."""
    if not os.path.exists(path):
        return ""
    with open(path, "rb") as f:
        size = os.fstat(f.fileno()).st_size
        if size <= MAX_LOG:
            data = f.read()
        else:
            head = f.read(MAX_LOG // 2)
            f.seek(-(MAX_LOG // 2), os.SEEK_END)
            data = head + b"\n[...]\n" + f.read()
    return data.decode("utf-8", "replace")


def run_child(request, root, scratch, out):
    log = os.path.join(scratch, "log")
    reading, writing = os.pipe()
    begun = time.monotonic()
    child = os.fork()
    if child == 0:
        os.close(reading)
        os.close(out.fileno())
        tracesmith_session.run(request, root, log, os.path.join(scratch, "probe"), writing)
    os.close(writing)
    records, timed_out, cpu = tracesmith_children.receive(reading, child, begun + request["timeout"])
    os.close(reading)
    return {"records": records, "timed_out": timed_out, "seconds": time.monotonic() - begun, "cpu": cpu, "log": read_log(log)}


def main():
    out = os.fdopen(os.dup(1), "w")
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)
    os.dup2(null, 2)
    scratch, root = os.path.dirname(os.path.abspath(__file__)), os.getcwd()

    def send(answer):
        out.write(json.dumps(answer) + "\n")
        out.flush()

    request = json.loads(sys.stdin.readline())
    set_times(root, set(request.get("changed") or ()))
    before = snapshot(root)
    send(run_child(request, root, scratch, out))
    if sys.stdin.readline():
        send({"left": differences(before, snapshot(root))})


if __name__ == "__main__":
    main()
