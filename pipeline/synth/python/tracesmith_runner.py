"""Runs a project's tests once, in a child process.

The request is a JSON object on the first line of standard input. The results go to
standard output as a line of JSON. The caller then kills every process that the run
started and sends a second line. The answer to that is the list of files that the run
left in the tree. This process imports nothing from the project.
"""
import json
import os
import stat
import sys
import time

import tracesmith_children
import tracesmith_session

MAX_LOG = 64 << 10  # bytes of a run's output to keep: the start and the end
HEALTHY_MTIME = 1000000000  # modification time of all unchanged files, so that their compiled code stays valid


def entries(root):
    """Yields (path relative to root, entry, stat) for every file and directory below root that can be read."""
    todo = [""]
    while todo:
        parent = todo.pop()
        try:
            found = list(os.scandir(os.path.join(root, parent)))
        except OSError:
            continue
        for entry in found:
            path = os.path.join(parent, entry.name)
            try:
                info = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            yield path, entry, info
            if stat.S_ISDIR(info.st_mode):
                todo.append(path)


def set_times(root, changed):
    """Sets the modification time of all files: one time for changed files, another for the rest. Compiled
    code of a changed file is then stale."""
    for path, entry, info in entries(root):
        if stat.S_ISREG(info.st_mode):
            mtime = HEALTHY_MTIME + (path in changed)
            os.utime(entry.path, (mtime, mtime))


def snapshot(root):
    """Returns a dictionary from path to a tuple that changes when the file or directory changes."""
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
    """Returns whether a path belongs to a cache that test runs commonly leave behind."""
    parts = path.split(os.sep)
    return any(p in ("__pycache__", ".pytest_cache", ".hypothesis", ".mypy_cache", ".coverage") for p in parts) or path.endswith((".pyc", ".pyo"))


def differences(before, after):
    """Returns the paths that a run created, changed or removed, without caches."""
    return sorted(p for p in set(before) | set(after) if before.get(p) != after.get(p) and not ignored(p))


def read_log(path):
    """Returns a run's output; if it is long, only its start and end."""
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
    """Runs the tests in a child process and returns the answer (see answer in passes.go)."""
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
