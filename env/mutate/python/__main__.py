"""The mutator: reads one request per line and writes one answer per line, until its input ends.

It parses the code of a workspace and never imports it. Requests and answers are JSON objects in which bytes are
base64-encoded.
"""
import base64
import io
import json
import os
import sys
import threading
import warnings

from functions import outline, replace_functions, restore_functions, show_function
from registry import OPERATORS
from sites import diff_of_file, mutate, sites
from source import Refused, Source

CACHE_SIZE = 8  # files whose sites are cached


class Workspace:
    def __init__(self, root):
        self.root, self.known = root, {}

    def read(self, path):
        full = os.path.join(self.root, path)
        if not os.path.realpath(full).startswith(os.path.realpath(self.root) + os.sep):
            raise Refused("lies outside the workspace")
        try:
            with open(full, "rb") as f:
                return f.read(4 << 20)
        except OSError as e:
            raise Refused("cannot be read: %s" % e.strerror)

    def sites(self, path, types, wanted=None):
        raw = self.read(path)
        key = (path, raw, json.dumps(types, sort_keys=True), repr(wanted))
        if key not in self.known:
            while len(self.known) >= CACHE_SIZE:
                self.known.pop(next(iter(self.known)))
            src = Source(path, raw)
            self.known[key] = src, sites(src, types, wanted=wanted)
        return self.known[key]

    def enumerate(self, request):
        """Lists the sites of one file. If lines are given, lists only sites that begin on these lines."""
        lines = None if request.get("lines") is None else set(request["lines"])
        _, found = self.sites(request["file"], request.get("types") or {}, request.get("operators"))
        return {"sites": [r for r in (s.record() for s in found) if lines is None or r["line"] in lines]}

    def apply(self, request):
        """Makes one mutation that changes several sites: {file: [id...]}."""
        parts = []
        for path in sorted(request["sites"]):
            src, found = self.sites(path, (request.get("typed") or {}).get(path) or {})
            by_id = {s.id: s for s in found}
            missing = [i for i in request["sites"][path] if i not in by_id]
            if missing:
                raise Refused("%s: has no site %s: the file is not the one that was listed" % (path, missing[0]))
            data, tree, edits = mutate(src, [by_id[i] for i in request["sites"][path]])
            parts.append(diff_of_file(src, data, tree, edits))
        return join_parts(parts)

    def outline(self, request):
        """Lists the functions of one file."""
        return {"functions": outline(Source(request["file"], self.read(request["file"])))}

    def show(self, request):
        """Returns one function, and its file without the function's body."""
        return show_function(Source(request["file"], self.read(request["file"])), request["func"])

    def exchange(self, request):
        """Makes a mutation that replaces a function by a given text."""
        src = Source(request["file"], self.read(request["file"]))
        return join_parts([diff_of_file(src, *replace_functions(src, {request["func"]: request["text"]}))])

    def reverse(self, request):
        """Makes a mutation that restores an older version of functions: {file: [older, newer]}."""
        parts = []
        for path in sorted(request["versions"]):
            older, newer = (Source(path, base64.b64decode(v)) for v in request["versions"][path])
            src = Source(path, self.read(path))
            parts.append(diff_of_file(src, *restore_functions(src, older, newer)))
        return join_parts(parts)

    def compare(self, request):
        """Makes a mutation from a given change: {file: [content in the workspace, new content]}."""
        parts = []
        for path in sorted(request["versions"]):
            old, new = (Source(path, base64.b64decode(v)) for v in request["versions"][path])
            if self.read(path) != old.raw:
                raise Refused("%s: is not as in the commit that the change belongs to" % path)
            parts.append(diff_of_file(old, new.raw, new.tree, [(0, len(old.data), b"")]))
        return join_parts(parts)


def join_parts(parts):
    return {"patch": base64.b64encode(b"".join(p["patch"] for p in parts)).decode("ascii"),
            "funcs": [f for p in parts for f in p["funcs"]]}


def hello(request):
    return {"python": "%d.%d.%d" % sys.version_info[:3],
            "operators": [{"id": o.id, "family": o.family, "title": o.title, "symptom": o.symptom} for o in OPERATORS.values()]}


def answer(workspace, request):
    try:
        return hello(request) if request["op"] == "hello" else getattr(workspace, request["op"])(request)
    except Refused as e:
        return {"refused": str(e)}
    except (RecursionError, MemoryError) as e:
        return {"refused": "is nested too deeply or too large: %s" % type(e).__name__}
    except Exception as e:  # after an internal error, continue with the next request
        return {"refused": "the mutator failed: %s: %s" % (type(e).__name__, e)}


def serve(requests, answers):
    workspace = Workspace(sys.argv[1])
    for line in requests:
        request = json.loads(line)
        reply = answer(workspace, request)
        reply["id"] = request["id"]
        answers.write(json.dumps(reply).encode("ascii") + b"\n")
        answers.flush()


def main():
    answers = io.open(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)
    os.dup2(null, 2)
    warnings.simplefilter("ignore")
    sys.setrecursionlimit(12000)
    threading.stack_size(256 << 20)
    worker = threading.Thread(target=serve, args=(sys.stdin.buffer, answers))
    worker.start()
    worker.join()


main()
