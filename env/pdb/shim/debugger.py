# The debugger: running the program, stopping it, and the prompt. The files of this folder form one module, so names
# such as Breakpoints and monotonic come from the files before this one (see channel.py).
#
# It imports cmd, inspect and tokenize early, because pdb and linecache may import them later, when modules of
# the program could shadow them.
import _signal
import _thread
import bdb
import builtins
import cmd
import dis
import inspect
import linecache
import os
import pdb
import sys
import tokenize
import traceback

# Programs may replace builtins such as open and len. The modules that the debugger uses keep the current builtins.
for module in ("ast bdb cmd code codecs codeop collections contextlib dis enum fnmatch functools genericpath inspect json json.decoder "
               "json.encoder linecache os pdb posixpath pprint re re._compiler re._parser reprlib signal sre_compile sre_parse textwrap "
               "threading tokenize traceback types warnings _py_warnings").split():
    for name, value in vars(builtins).items():
        if module in sys.modules and name[:1] != "_" and name != "input":  # a program's own cmd.Cmd must see its replaced input
            vars(sys.modules[module]).setdefault(name, value)

Base = pdb.Pdb  # main replaces pdb.Pdb for the program, see delegate
HERE = sys._getframe().f_code.co_filename  # the file name of the shim's code
DEBUGGER_FILES = (HERE, bdb.__file__, pdb.__file__)
SETTRACE, GETTRACE = sys.settrace, sys.gettrace  # main replaces them for the program, see Threads.settrace and Monitoring.gettrace
READING, COMMAND, RUNNING = "reading", "command", "running"
MAX_LINE = 400  # characters sent of one source line


class Shim(Breakpoints, Threads, Monitoring, Names, Base):
    def __init__(self, channel, config, root):
        Base.__init__(self, stdin=EmptyInput(), stdout=channel.output, nosigint=True, readrc=False,
                      skip=["importlib._bootstrap*", "_distutils_hack*", "__editable__*"])  # so that s on an import stops in it
        self.use_rawinput = False
        self.channel = channel
        self.source = Source(root, config["workdir"])
        self.context = config["context"]
        self.points = {}  # the host's id -> bdb.Breakpoint
        self.numbers = {}  # bdb's number -> [id, condition, whether it was removed]
        self.forget_breaks()
        self.state = RUNNING
        self.event = "line"
        self.refused = False
        self.answer = {}
        self.expired = []  # temporary breakpoints that were hit
        self.stopped = set()  # ids of the breakpoints at which this program stopped
        self.hits_before = {}  # id -> hits when this program began
        self.main_code = None
        self.post_mortem = self.caught = False
        self.currentbp = 0
        self.prepare()

    # -- running the program

    def is_debuggee(self):
        """Returns whether this is the debugged process and not a forked child."""
        return os.getpid() == self.channel.pid

    def run(self, *args):
        """Runs the program. Afterwards, only its other threads stop."""
        try:
            Base.run(self, *args)
        finally:
            self.ended, self.quitting = _thread.get_ident(), False

    def canonic(self, name):
        """Returns the real path of a file, cached so that a later chdir of the program does not change it."""
        path = self.fncache.get(name)
        if path is None:
            path = name
            if not (name[:1] == "<" and name[-1:] == ">"):
                try:
                    path = os.path.realpath(name)
                except (OSError, ValueError):  # the current directory was removed
                    pass
            self.fncache[name] = path
        return path

    def breaks_in(self, name):
        """Returns the lines of a file that have a breakpoint. Cached, because it is needed at every line of the program."""
        known = self.break_lines  # another thread may replace it
        lines = known.get(name)
        if lines is None:
            lines = known[name] = frozenset(self.breaks.get(self.canonic(name), ()))
        return lines

    def has_break(self, code):
        """Returns whether a line of a function has a breakpoint."""
        known, lines = self.break_codes, self.breaks_in(code.co_filename)  # in the opposite order of forget_breaks
        if not lines:
            return False
        key = code.co_filename, code  # code objects of two files may be equal
        if key not in known:
            known[key] = not lines.isdisjoint(line for _, line in dis.findlinestarts(code))
        return known[key]

    def trace_dispatch(self, frame, event, arg):
        here = _thread.get_ident()
        if MONITORING:
            if here != self.thread or not self.stepping() or not self.is_debuggee():
                if GETTRACE() == self.trace_dispatch:  # the step has ended
                    SETTRACE(None)
                return None
        elif self.stoplineno == -1 and not self.quitting:
            # Fast path while the program runs without stepping: bdb would need several calls to decide this.
            code = frame.f_code
            if event == "call":
                return self.trace_dispatch if self.has_break(code) else None
            lines = self.breaks_in(code.co_filename)
            if event == "line" and frame.f_lineno not in lines and code.co_firstlineno not in lines or event == "return" and self.stopframe is self.botframe:
                return self.trace_dispatch
        if here == self.thread and event == "call" and self.stopframe is not None and frame is not self.stopframe and not self.quitting:
            if MONITORING or not self.has_break(frame.f_code):
                return None
        return self.dispatch(frame, event, arg)

    trace_dispatch.__module__ = "bdb"  # lets pytest-timeout recognize a debugger

    def dispatch(self, frame, event, arg):
        here = _thread.get_ident()
        if here == self.thread and self.is_debuggee():
            with self.lock:
                if here == self.thread:
                    local = Base.trace_dispatch(self, frame, event, arg)
                    self.enterframe = None  # 3.13 would keep the program's objects alive
                    if event == "return" and self.is_last(frame):
                        self.end_of_thread()
                    # A frame must not keep its trace function after tracing was switched off: up to 3.9,
                    # its f_lineno would not change any more.
                    return local if GETTRACE() is not None else None
        return self.trace_elsewhere(frame, event)  # perhaps another thread has stopped meanwhile and become the stepped thread

    def stepping(self):
        """Returns whether a step is in progress, and not only breakpoints can stop the program."""
        return self.stoplineno != -1 or self.stopframe is not self.botframe

    def is_skipped_module(self, name):
        return isinstance(name, str) and Base.is_skipped_module(self, name)  # code run by exec may have no module name

    def stop_here(self, frame):
        return frame.f_code.co_filename not in (HERE, bdb.__file__) and Base.stop_here(self, frame)

    def mark(self, frame):
        """Sets the trace function of this frame and its callers, so that stepping can stop in them."""
        while frame is not None:
            frame.f_trace = self.trace_dispatch
            if frame.f_code is self.main_code:
                break
            frame = frame.f_back

    def trace_from(self, frame):
        """Starts tracing. The trace also covers this frame and its callers, which have begun already."""
        self.mark(frame)
        self.trace()

    def trace(self):
        if hasattr(self, "start_trace"):  # 3.14
            self.start_trace()
        else:
            SETTRACE(self.trace_dispatch)

    def user_call(self, frame, args):
        self.event = "call"
        Base.user_call(self, frame, args)

    def user_line(self, frame):
        self.event = "line"
        Base.user_line(self, frame)

    def user_return(self, frame, value):
        self.event = "return"
        Base.user_return(self, frame, value)

    def user_exception(self, frame, info):
        self.event = "exception"
        Base.user_exception(self, frame, info)

    def set_trace(self, frame=None, **_):
        """Implements breakpoint() and pdb.set_trace() for the program."""
        frame = frame or sys._getframe().f_back
        if not self.is_debuggee():
            return self.warn_child("breakpoint()", frame)
        if self.finished or self.state != RUNNING and self.thread == _thread.get_ident():
            return
        self.acquire_lock()
        try:
            self.thread, self.step_began = _thread.get_ident(), monotonic()
            self.set_step()
            self.trace_from(frame)
        finally:
            self.lock.release()

    def on_interrupt(self, signum, frame):
        if not self.is_debuggee() or self.waiting_for_threads:
            raise KeyboardInterrupt
        if self.state == READING:
            return
        if self.state == COMMAND:
            return self.interrupt_command()
        self.thread = _thread.get_ident()
        SETTRACE(None)
        outer = frame
        while outer is not None and outer.f_code is not self.main_code:
            if outer.f_code.co_filename in DEBUGGER_FILES:
                break
            outer = outer.f_back
        self.set_step()
        if outer is not None and outer.f_code is self.main_code:  # the interrupt came in the program's code
            # Stop now: the program may be inside a call that never returns.
            self.event = "line"
            self.interaction(frame, None)
        if self.stepping():
            self.trace_from(frame)
        elif self.breaks and not MONITORING:
            self.trace()

    # -- the prompt

    def interaction(self, frame, tb, *rest):
        if not self.is_debuggee():
            return self.warn_child("A stop", frame)
        with self.lock:
            if self.finished:
                return
            self.thread, self.step_began = _thread.get_ident(), 0
            limit = sys.getrecursionlimit()
            sys.setrecursionlimit(limit + 500)
            self.state = COMMAND
            self.channel.settle()
            try:
                if frame is not None:
                    self.note_stop(frame)
                    self.announce(frame)
                Base.interaction(self, frame, tb, *rest)
            finally:
                vars(self).pop("curframe_locals", None)  # up to 3.13; it would keep the program's objects alive
                self.state = RUNNING
                if sys.getrecursionlimit() == limit + 500:
                    sys.setrecursionlimit(limit)

    def get_stack(self, frame, tb):
        """Returns the stack without the debugger's frames."""
        stack, index = Base.get_stack(self, frame, tb)
        current = stack[index]
        codes = [f.f_code for f, _ in stack]
        if self.main_code in codes:
            stack = stack[codes.index(self.main_code):]
        stack = [entry for entry in stack if entry[0].f_code.co_filename != HERE]
        return stack, stack.index(current) if current in stack else len(stack) - 1

    def format_stack_entry(self, frame_lineno, *a, **k):
        entry = Base.format_stack_entry(self, frame_lineno, *a, **k)
        for root in self.source.roots:
            if entry.startswith(root):
                return entry[len(root):]
        return entry

    def cmdloop(self, intro=None):
        self.preloop()
        stop = self.run_queue(None)
        while not stop:
            self.state = READING
            self.channel.send(self.describe())
            self.refused, self.answer, self.expired = False, {}, []
            message = self.channel.receive()
            self.state = COMMAND
            stop = self.run_queue(self.handle(message))
        if self.stepping() and not self.post_mortem:
            self.mark(self.stack[-1][0])
            self.step_began = monotonic()
        self.state = READING  # on_interrupt then ignores an interrupt that comes late, in the debugger's own code
        self.postloop()

    def run_queue(self, stop):
        """Runs the commands in pdb's queue: those of an alias and, from 3.14 on, the typed line itself."""
        while self.cmdqueue and not stop:
            line = self.precmd(self.cmdqueue.pop(0))
            stop = self.postcmd(self.onecmd(line), line)
        return stop

    def _validate_file_mtime(self):
        """Disables the warning of 3.13 and later about changed files, which Source.changed replaces."""

    def handle(self, message):
        try:
            if "breakpoints" in message:
                self.mirror(message["breakpoints"])
            if "break" in message:
                self.answer["break"] = self.resolve(message["break"])
            if "command" in message:
                line = self.precmd(message["command"])
                return self.postcmd(self.onecmd(line), line)
        except Refused as e:
            self.error(str(e))
        except KeyboardInterrupt:
            self.error("KeyboardInterrupt: the command was interrupted")
        except Exception as e:
            self.error("%s: %s" % (type(e).__name__, e))
        return None

    def precmd(self, line):
        # Does not split at ";;": the host has done that, and pdb would also split inside strings.
        words = line.split(None, 1)
        return Base.precmd(self, line) if words and words[0] in self.aliases else line

    # Does not use print, which programs replace.
    def message(self, msg, end="\n"):
        self.stdout.write("%s%s" % (msg, end))

    def error(self, msg):
        self.refused = True
        self.message("*** %s" % (msg,))

    def not_available(self, arg):
        self.error(self.reasons.get(self.lastcmd.split(None, 1)[0], "This command is not available here."))

    reasons = {
        "interact": "interact needs a person at a keyboard. Use `p EXPRESSION` or `!STATEMENT` instead.",
        "debug": "debug (a debugger inside the debugger) is not available. Set a breakpoint inside the function "
                 "and continue, or use `p EXPRESSION`.",
        "commands": "commands is not available. Set the breakpoint with a condition, or send the commands one by one "
                    "once it is hit.",
        "exceptions": "exceptions needs Python 3.13. The traceback above names the exceptions that led to this one.",
    }
    do_interact = do_debug = do_commands = not_available
    do_exceptions = getattr(Base, "do_exceptions", not_available)
    # The host runs these commands. They arrive here only through an alias.
    do_run = do_restart = do_quit = do_q = do_exit = do_EOF = not_available
    do_break = do_b = do_tbreak = do_cl = do_disable = do_enable = do_condition = do_ignore = not_available

    # -- messages to the host

    def describe(self):
        frame, line = self.stack[self.curindex]
        path = self.canonic(frame.f_code.co_filename)
        body = self.common_fields(self.event)
        # signal.getsignal would leave reference cycles that keep frames alive.
        body["handles_interrupts"] = _signal.getsignal(_signal.SIGINT) != self.on_interrupt
        line = line or frame.f_code.co_firstlineno
        body.update(
            file=self.source.short(path), line=line, function=frame.f_code.co_name, depth=self.curindex + 1,
            refused=self.refused, answer=self.answer, post_mortem=self.post_mortem, caught=self.caught)
        body["changed"] = self.source.changed(path)
        try:
            lines = linecache.getlines(frame.f_code.co_filename, frame.f_globals)
        except Exception:
            lines = []
        first = max(1, line - self.context)
        body["first"] = first
        body["lines"] = [text.rstrip("\r\n")[:MAX_LINE] for text in lines[first - 1:line + self.context]]
        return body

    def common_fields(self, event):
        points = [[key, p.hits, p.ignore] for key, p in sorted(self.points.items())]
        return {"event": event, "points": points, "expired": self.expired}
