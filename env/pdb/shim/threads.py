# Threads and processes of the program. One thread is stepped through at a time;
# the others stop at breakpoints only, and wait while a prompt is open. Forked
# children are never stopped.
import _thread
import os
import resource
import sys
import threading
from time import monotonic, sleep  # before a program replaces them

BELOW = {getattr(kind, name).__code__ for kind, name in (
    (threading.Thread, "run"), (threading.Timer, "run"), (threading.Thread, "_bootstrap_inner"))}  # a thread's own code
PATIENCE = 100  # waits of 5 ms, longer on a busy machine; a step may wait for the very thread that waits for it


class Threads:
    """The part of Shim that concerns threads and child processes."""

    def prepare(self):
        self.lock = _thread.RLock()  # held by the thread that has the prompt
        self.thread = _thread.get_ident()  # the one stepped through
        self.prompted = threading.current_thread()  # the one of the last prompt
        self.stepping = 0  # when the step under way began
        self.ending = self.over = self.told = False
        self.children = resource.getrusage(resource.RUSAGE_CHILDREN)  # of the commands before the program, too
        self.foreign = ""  # where the program set a trace function of its own

    def trace_elsewhere(self, frame, event):
        code = frame.f_code
        if event == "call":
            return self.trace_dispatch if self.may_stop(code.co_filename) else None
        if event == "line" and frame.f_lineno in self.breaks.get(self.canonic(code.co_filename), ()):
            if self.mine():
                self.stop_elsewhere(frame)
            elif self.break_here(frame):
                self.passed_by("Breakpoint %d" % self.numbers[self.currentbp][0], frame)
                SETTRACE(None)  # a forked child runs on alone
                return None
        return self.trace_dispatch

    def stop_elsewhere(self, frame):
        """Stops at a breakpoint in a thread that was not stepped through so far."""
        self.take_turn()
        try:
            if not self.over and self.break_here(frame):
                self.thread = _thread.get_ident()
                self.user_line(frame)
        finally:
            self.lock.release()

    def take_turn(self):
        """Takes the lock, after a step under way in another thread: it comes to its end first."""
        step, waits = None, 0
        while True:
            self.lock.acquire()
            if self.stepping != step:
                step, waits = self.stepping, 0
            if not step or self.thread == _thread.get_ident() or waits == PATIENCE:
                return
            self.lock.release()
            sleep(0.005)
            waits += 1

    def is_last(self, frame):
        """Whether a thread of the program ends with this frame."""
        below = frame.f_back
        return below is None or below.f_code in BELOW and frame.f_code not in BELOW

    def end_of_thread(self):
        """A step ends where its thread does: the program goes on."""
        if self.stopframe is not self.botframe:
            self.set_continue()
            self.channel.settle()
            self.message("(Thread %s has ended.)" % threading.current_thread().name)
        self.stepping = 0

    def trace_running(self, path):
        """Has calls that are under way traced: they began before the file was of interest."""
        for frame in list(sys._current_frames().values()):
            while frame is not None:
                if frame.f_trace is None and self.canonic(frame.f_code.co_filename) == path:
                    frame.f_trace = self.trace_dispatch
                if frame.f_code is self.main_code:
                    break
                frame = frame.f_back

    def passed_by(self, what, frame):
        """Says once per child process that it does not stop."""
        if not self.told and frame is not None:
            self.told = True
            self.channel.settle()
            self.message("(%s was reached at %s:%d in a child process, which cannot be stopped.)" % (
                what, self.source.short(self.canonic(frame.f_code.co_filename)), frame.f_lineno))

    def had_children(self):
        """Whether the program had processes of its own: waited for by now, or not yet."""
        try:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return resource.getrusage(resource.RUSAGE_CHILDREN) != self.children
        return True

    def interrupt_command(self):
        """Ends the command at the prompt, in whichever thread it runs."""
        if self.thread == _thread.get_ident():
            raise KeyboardInterrupt
        try:
            import ctypes
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self.thread), ctypes.py_object(KeyboardInterrupt))
        except Exception:
            pass  # the other side gives up on us

    def settrace(self, function):
        """sys.settrace as the program sees it: switching tracing off leaves the debugger on."""
        caller = sys._getframe(1)
        if caller.f_code.co_filename not in OWN and caller.f_code.co_filename != threading.__file__ and self.mine():
            if function is None or function == self.trace_dispatch:
                function = self.trace_dispatch
            elif not self.foreign:
                self.foreign = "%s:%d" % (self.source.short(self.canonic(caller.f_code.co_filename)), caller.f_lineno)
        SETTRACE(function)

    def wait_for_threads(self):
        """What the interpreter does at its end, while threads can still be stopped."""
        self.ending = True
        try:
            threading._shutdown()
        except KeyboardInterrupt:
            pass
        threading._shutdown = lambda: None
