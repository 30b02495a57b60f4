# Threads and child processes of the program. The debugger steps through one thread at a time. The other
# threads stop only at breakpoints, and wait while a prompt is open. Forked children never stop.
import _thread
import os
import resource
import sys
import threading
from time import monotonic, sleep  # before a program replaces them

THREAD_CODE = {getattr(kind, name).__code__ for kind, name in (
    (threading.Thread, "run"), (threading.Timer, "run"), (threading.Thread, "_bootstrap_inner"))}
MAX_WAITS = 100  # of 5 ms each; limited because a step may be waiting for the thread that waits for the step


class Threads:
    """The part of Shim that concerns threads and child processes."""

    def prepare(self):
        self.lock = _thread.RLock()  # held by the thread that has the prompt
        self.thread = _thread.get_ident()  # the stepped thread
        self.prompted = threading.current_thread()  # the thread of the last prompt
        self.step_began = 0  # time of the current step; 0 if there is none
        self.ended = None  # the main thread, if it has ended
        self.waiting_for_threads = self.finished = self.warned = False
        self.children = resource.getrusage(resource.RUSAGE_CHILDREN)  # of commands run before the program
        self.other_tracer = ""  # FILE:LINE where the program set its own trace function

    def trace_elsewhere(self, frame, event):
        code = frame.f_code
        if event == "call":
            return self.trace_dispatch if self.has_break(code) else None
        if event == "line" and frame.f_lineno in self.breaks.get(self.canonic(code.co_filename), ()):
            if self.is_debuggee():
                self.stop_elsewhere(frame)
            elif self.break_here(frame):
                self.warn_child("Breakpoint %d" % self.numbers[self.currentbp][0], frame)
                SETTRACE(None)  # a forked child continues without tracing
                if MONITORING:
                    MONITORING.set_events(self.tool, 0)
                return None
        return self.trace_dispatch

    def stop_elsewhere(self, frame):
        """Stops at a breakpoint in this thread and makes it the stepped thread."""
        self.acquire_lock()
        try:
            if not self.finished and self.break_here(frame):
                self.thread = _thread.get_ident()
                self.user_line(frame)
        finally:
            self.lock.release()

    def acquire_lock(self):
        """Takes the lock, after waiting (up to MAX_WAITS) for the current step of another thread to end."""
        step, waits = None, 0
        while True:
            self.lock.acquire()
            if self.step_began != step:
                step, waits = self.step_began, 0
            if not step or self.thread == _thread.get_ident() or waits == MAX_WAITS:
                return
            self.lock.release()
            sleep(0.005)
            waits += 1

    def is_last(self, frame):
        """Returns whether this is the outermost frame of a thread of the program."""
        outer = frame.f_back
        return outer is None or outer.f_code in THREAD_CODE and frame.f_code not in THREAD_CODE

    def end_of_thread(self):
        """Lets the program continue when the stepped thread has ended."""
        if self.stepping():
            self.set_continue()
            self.channel.settle()
            self.message("(Thread %s has ended.)" % threading.current_thread().name)
        self.step_began = 0

    def trace_running(self, path):
        """Traces the running functions of a file that has just got a breakpoint."""
        for frame in list(sys._current_frames().values()):
            while frame is not None:
                if frame.f_trace is None and self.canonic(frame.f_code.co_filename) == path:
                    frame.f_trace = self.trace_dispatch
                if frame.f_code is self.main_code:
                    break
                frame = frame.f_back

    def warn_child(self, what, frame):
        """Prints, once per child process, that the debugger cannot stop in it."""
        if not self.warned and frame is not None:
            self.warned = True
            self.channel.settle()
            self.message("(%s was reached at %s:%d in a child process, which cannot be stopped.)" % (
                what, self.source.short(self.canonic(frame.f_code.co_filename)), frame.f_lineno))

    def had_children(self):
        """Returns whether the program started child processes, finished or not."""
        try:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return resource.getrusage(resource.RUSAGE_CHILDREN) != self.children
        return True

    def interrupt_command(self):
        """Raises KeyboardInterrupt in the thread that runs the command at the prompt."""
        if self.thread == _thread.get_ident():
            raise KeyboardInterrupt
        try:
            import ctypes
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self.thread), ctypes.py_object(KeyboardInterrupt))
        except Exception:
            pass  # the command continues until its timeout

    def settrace(self, function):
        """Replaces sys.settrace for the program. Switching tracing off does not switch the debugger off."""
        caller = sys._getframe(1)
        if caller.f_code.co_filename not in DEBUGGER_FILES and caller.f_code.co_filename != threading.__file__ and self.is_debuggee():
            if function is None or function == self.trace_dispatch:
                function = self.trace_dispatch
            elif not self.other_tracer:
                self.other_tracer = "%s:%d" % (self.source.short(self.canonic(caller.f_code.co_filename)), caller.f_lineno)
        SETTRACE(function)

    def wait_for_threads(self):
        """Joins the threads as the interpreter does at exit, but while they can still stop at breakpoints."""
        self.waiting_for_threads = True
        try:
            threading._shutdown()
        except KeyboardInterrupt:
            pass
        threading._shutdown = lambda: None
