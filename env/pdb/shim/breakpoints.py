# Breakpoints: finding their file and line, and keeping bdb's list equal to the host's. The host is the
# debugger's Go process outside the sandbox.
import bdb
import os
import sys
import threading
import traceback
import types


class Breakpoints:
    """The part of Shim that concerns breakpoints."""

    def mirror(self, wanted):
        """Makes bdb's breakpoints equal to the host's list."""
        unplaced = []
        for key in set(self.points) - {w["id"] for w in wanted}:
            self.remove(key)
        for w in wanted:
            point = self.points.get(w["id"])
            if point is None:
                try:
                    point = self.place(w["id"], self.source.full(w["file"]), w)
                except Refused as e:
                    unplaced.append([w["id"], str(e)])
                    continue
            point.cond = w.get("condition") or None
            point.enabled, point.ignore = w["enabled"], w.get("ignore", 0)
            point.temporary = w.get("temporary", False)
            self.numbers[point.number] = [w["id"], point.cond, False]
        self.answer["unplaced"] = unplaced

    def place(self, key, path, w):
        path = self.canonic(path)
        self.source.check(path, w["line"])
        problem = self.set_break(path, w["line"], w.get("temporary", False), w.get("condition") or None)
        if problem:
            raise Refused(problem)
        point = bdb.Breakpoint.bplist[path, w["line"]][-1]
        point.hits = self.hits_before[key] = w.get("hits", 0)
        self.points[key] = point
        self.forget_breaks()
        if MONITORING:
            self.monitor()
        else:
            self.trace_running(path)
        return point

    def remove(self, key):
        point = self.points.pop(key)
        self.clear_bpbynumber(str(point.number))
        self.forget_breaks()

    def forget_breaks(self):
        self.break_lines = {}  # co_filename -> lines of the file that have a breakpoint
        self.break_codes = {}  # (co_filename, code object) -> whether one of its lines has a breakpoint

    def do_clear(self, arg):
        """bdb calls this when a temporary breakpoint is hit."""
        for key, point in list(self.points.items()):
            if str(point.number) == arg:
                self.expired.append(key)
                self.numbers[point.number][2] = True
                self.remove(key)

    def missed(self):
        """Returns [id, hits] of each enabled breakpoint at which this program never stopped."""
        if self.other_tracer:
            return []
        return [[key, p.hits - self.hits_before[key]] for key, p in sorted(self.points.items())
                if p.enabled and key not in self.stopped]

    def note_stop(self, frame):
        """Records that the program stopped at the breakpoints of this line, even if a step led here."""
        path = self.canonic(frame.f_code.co_filename)
        self.stopped.update(k for k, p in self.points.items() if p.file == path and p.line == frame.f_lineno)

    def resolve(self, w):
        """Resolves LINE, FILE:LINE, FUNCTION or FILE:FUNCTION to a file and a line."""
        condition = w.get("condition")
        if condition:
            try:
                compile(condition, "<condition>", "eval")
            except (SyntaxError, ValueError) as e:
                raise Refused("The condition %r is not a Python expression: %s" % (condition, e))
        path, line = self.locate(w["spec"])
        self.source.check(path, line)
        return {"file": self.source.short(path), "line": line}

    def locate(self, spec):
        if spec.lstrip("-").isdigit():
            path = self.canonic(self.curframe.f_code.co_filename)
            if not os.path.isfile(path):
                raise Refused("The current frame has no source file; use FILE:LINE.")
            return path, int(spec)
        file, colon, rest = spec.rpartition(":")
        file, rest = file.strip(), rest.strip()
        if colon:
            path = self.source.find(file)
            if rest.lstrip("-").isdigit():
                return path, int(rest)
            return path, self.parsing(self.source.function_in, path, rest.rstrip("()"))
        return self.function(spec[:-2] if spec.endswith("()") else spec)

    def parsing(self, find, path, name):
        """Calls find(path, name). Raises Refused if the file does not parse."""
        try:
            return find(path, name)
        except (SyntaxError, ValueError, RecursionError) as e:
            raise Refused("%s cannot be read as Python: %s" % (self.source.short(path), e))

    def function(self, name):
        if not all(part.isidentifier() for part in name.split(".")):
            raise Refused("%r is neither LINE, FILE:LINE nor a function name." % name)
        try:
            value = eval(name, self.curframe.f_globals, self.locals())
        except Exception:
            value = None
        for _ in range(20):
            inner = getattr(value, "__wrapped__", None) or getattr(value, "fget", None) \
                or getattr(value, "__func__", None)
            if inner is None:
                break
            value = inner
        code = getattr(value, "__code__", None)
        if isinstance(code, types.CodeType):
            path = self.canonic(code.co_filename)
            if os.path.isfile(path):
                return path, self.parsing(self.source.function_at, path, code)
        found = self.source.search(name) or self.source.imported(name)
        here = [f for f in found if f[0] == self.canonic(self.curframe.f_code.co_filename)]
        if len(found) > 1 and len(here) == 1:
            found = here
        if len(found) == 1:
            return found[0]
        if found:
            raise Refused("%s is ambiguous: %s. Use one of these." % (
                name, ", ".join("%s:%d" % (self.source.short(p), n) for p, n in found[:8])))
        raise Refused("No function %s in the current frame, in the workspace or on sys.path. Use FILE:LINE." % name)

    def announce(self, frame):
        """Prints which breakpoint stopped the program and, if evaluating its condition failed, the error. Without a
        breakpoint, prints the thread if it is not the thread of the last prompt."""
        thread, before = threading.current_thread(), self.prompted
        self.prompted = thread
        number, self.currentbp = self.currentbp, 0
        if not number or number not in self.numbers or self.event != "line":
            if thread is not before:
                self.message("(This is thread %s.)" % thread.name)
            return
        key, cond, removed = self.numbers[number]
        self.message("Breakpoint %d hit%s%s." % (
            key, "" if thread is threading.main_thread() else " in thread %s" % thread.name,
            " (temporary: now removed)" if removed else ""))
        if not cond:
            return
        try:
            eval(cond, View(frame, frame.f_locals).f_globals, frame.f_locals)
        except Exception:
            kind = traceback.format_exception_only(*sys.exc_info()[:2])[-1].strip()
            self.message("It stopped here because its condition %r raised %s" % (cond, kind))
