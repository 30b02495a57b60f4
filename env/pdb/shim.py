# The debugger inside the sandbox: pdb.Pdb with a private way in and out.
#
# Commands arrive as lines of base64 JSON on what was standard input; the
# debugged program gets /dev/null there. Each prompt is announced by one OSC
# escape (see env/framing) carrying everything the other side shows: position,
# source, breakpoints. Breakpoints are kept on the other side and mirrored here.
#
# Started as: python -u -c BOOTSTRAP WORKSPACE {-m MODULE | -c CODE | --command NAME |
# SCRIPT} ARG..., with its source and then one line of configuration on stdin.
# Runs on Python 3.6 to 3.14.
import _thread
import ast
import base64
import bdb
import builtins
import dis
import fcntl
import json
import linecache
import os
import pdb
import pprint
import runpy
import select
import signal
import sys
import time
import traceback
import types

HERE = sys._getframe().f_code.co_filename  # of this code
READING, COMMAND, RUNNING = "reading", "command", "running"
MAX_SEARCH = 4000  # files looked at when a function is searched for by name
SKIP = {"__pycache__", "node_modules", "venv", "env", "site-packages", "build", "dist"}
MAX_LINE = 400  # characters of one source line sent along


def private(fd):
    """Duplicates fd to where a program that closes "its" descriptors rarely looks."""
    for low in (900, 200, 10):
        try:
            return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, low)
        except OSError:
            pass
    return os.dup(fd)


class Output:
    """The original standard output, whatever the program does to fd 1."""

    encoding = "utf-8"

    def __init__(self, fd):
        self.fd = fd

    def write(self, text):
        data = text.encode("utf-8", "backslashreplace")
        while data:
            try:
                data = data[os.write(self.fd, data):]
            except BlockingIOError:  # the program made the shared pipe non-blocking
                select.select([], [self.fd], [])
        return len(text)

    def flush(self):
        pass

    def isatty(self):
        return False


class Nothing:
    """Standard input of whatever asks: at its end."""

    encoding = "utf-8"

    def readline(self, *_):
        return ""

    read = readline


class Channel:
    """Frames out, messages in."""

    def __init__(self):
        self.input = private(0)
        self.output = Output(private(1))
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
        self.pending = b""
        self.nonce = ""
        self.seq = 0
        self.pid = os.getpid()

    def receive(self):
        while b"\n" not in self.pending:
            chunk = os.read(self.input, 1 << 16)
            if not chunk:
                os._exit(0)  # nobody is left to talk to
            self.pending += chunk
        line, self.pending = self.pending.split(b"\n", 1)
        return json.loads(base64.b64decode(line).decode("utf-8"))

    def send(self, body):
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except Exception:
                pass
        self.seq += 1
        data = base64.b64encode(json.dumps(body).encode("ascii")).decode("ascii")
        self.output.write("\x1b]7717;%s;%d;%d;%s\x07" % (self.nonce, self.seq, self.pid, data))


class Refused(Exception):
    """A command that cannot be done; the text says why."""


# --- source: files, executable lines, functions


class Source:
    """Finds files and the lines in them that a breakpoint can stop at."""

    def __init__(self, root):
        self.root = root
        self.roots = [r.rstrip("/") + "/" for r in (root, os.path.realpath(root))]
        self.start = os.getcwd()

    def short(self, path):
        for root in self.roots:
            if path.startswith(root):
                return path[len(root):]
        return path

    def find(self, name):
        names = [name]
        if not name.endswith(".py"):
            names += [name + ".py", name.replace(".", "/") + ".py"]
        for n in names:
            for folder in [self.start, self.root] + [p or "." for p in sys.path if isinstance(p, str)]:
                path = os.path.abspath(os.path.join(folder, n))
                if os.path.isfile(path):
                    return path
        raise Refused("No file %s in the workspace or on sys.path. Give a path relative to the workspace." % name)

    def lines(self, path):
        lines = linecache.getlines(path)
        if not lines:
            linecache.checkcache(path)
            lines = linecache.getlines(path)
        return lines

    def tree(self, path):
        return ast.parse("".join(self.lines(path)))

    def executable(self, path):
        """Line numbers with code of their own, or None if the file does not compile."""
        try:
            code = compile("".join(self.lines(path)), path, "exec", 0, True)
        except (SyntaxError, ValueError, RecursionError):
            return None
        found, todo = set(), [code]
        while todo:
            code = todo.pop()
            found.update(line for _, line in dis.findlinestarts(code) if line)
            todo += [c for c in code.co_consts if isinstance(c, types.CodeType)]
        return found

    def check(self, path, line):
        """Refuses a line where the program can never stop."""
        lines, short = self.lines(path), self.short(path)
        if not lines:
            raise Refused("%s is empty or cannot be read." % short)
        good = self.executable(path)
        if good is None:
            text = lines[line - 1].strip() if 0 < line <= len(lines) else ""
            if text and not text.startswith("#"):
                return
            good = {i for i, text in enumerate(lines, 1) if text.strip() and not text.strip().startswith("#")}
        if line in good:
            return
        why = "is blank, a comment or only part of a statement"
        if line < 1 or line > len(lines):
            why = "does not exist: the file has %d line%s" % (len(lines), "s" if len(lines) != 1 else "")
        near = sorted(good, key=lambda n: (abs(n - line), n))[:1]
        hint = " The nearest line that can be stopped at is %d: %s" % (
            near[0], lines[near[0] - 1].strip()[:120]) if near else ""
        raise Refused("Line %d of %s %s.%s" % (line, short, why, hint))

    def functions(self, path):
        """Yields (qualified name, first line incl. decorators, first line of the body)."""
        todo = [("", self.tree(path))]
        while todo:
            prefix, node = todo.pop()
            for child in ast.iter_child_nodes(node):
                name = prefix
                if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                    name = prefix + child.name + "."
                    if not isinstance(child, ast.ClassDef):
                        body = child.body
                        if len(body) > 1 and is_text(body[0]):
                            body = body[1:]
                        first = min([child.lineno] + [d.lineno for d in child.decorator_list])
                        yield name[:-1], first, first_line(body[0])
                todo.append((name, child))

    def function_in(self, path, name):
        for qualified, _, line in self.functions(path):
            if qualified == name or qualified.endswith("." + name):
                return line
        raise Refused("No function %s in %s." % (name, self.short(path)))

    def function_at(self, path, code):
        for qualified, first, line in self.functions(path):
            if first <= code.co_firstlineno <= line and qualified.split(".")[-1] == code.co_name:
                return line
        return code.co_firstlineno

    def search(self, name):
        """Finds a function nobody has imported yet, by its name, in the workspace."""
        found, seen = [], 0
        marks = ("def " + name.split(".")[-1]).encode()
        for folder, folders, files in os.walk(self.root):
            folders[:] = sorted(f for f in folders if not f.startswith(".") and f not in SKIP)
            for file in sorted(files):
                if not file.endswith(".py") or seen >= MAX_SEARCH:
                    continue
                seen += 1
                path = os.path.join(folder, file)
                try:
                    with open(path, "rb") as f:
                        if marks not in f.read(1 << 20):
                            continue
                    here = [(q, line) for q, _, line in self.functions(path)]
                except (OSError, SyntaxError, ValueError, RecursionError):
                    continue
                dotted = self.short(path)[:-3].replace("/", ".")
                for qualified, line in here:
                    full = dotted + "." + qualified
                    if qualified == name or full.endswith("." + name) or full == name:
                        found.append((path, line))
        return found


def is_text(node):
    if not isinstance(node, ast.Expr):
        return False
    if isinstance(node.value, getattr(ast, "Constant", ())):
        return isinstance(node.value.value, str)
    return type(node.value).__name__ == "Str"  # up to 3.7


def first_line(node):
    return min([node.lineno] + [d.lineno for d in getattr(node, "decorator_list", [])])


# --- the debugger

Base = pdb.Pdb  # pdb.Pdb itself is replaced for the program, see delegate


class Shim(Base):
    def __init__(self, channel, config, root):
        Base.__init__(self, stdin=Nothing(), stdout=channel.output, nosigint=True, readrc=False)
        self.use_rawinput = False
        self.channel = channel
        self.source = Source(root)
        self.context = config["context"]
        self.started = time.time()
        self.points = {}  # id on the other side -> bdb.Breakpoint
        self.numbers = {}  # bdb's number -> [id, condition, whether it is gone]
        self.hot = {}  # co_filename -> may hold a breakpoint
        self.lock = _thread.RLock()
        self.state = RUNNING
        self.event = "line"
        self.refused = False
        self.answer = {}
        self.spent = []  # temporary breakpoints that were hit
        self.main_code = None
        self.post_mortem = False
        self.currentbp = 0

    # -- running the program

    def mine(self):
        return os.getpid() == self.channel.pid

    def trace_dispatch(self, frame, event, arg):
        # Most calls while the program runs freely go into code without any
        # breakpoint: decided here, without bdb's four calls.
        if event == "call" and self.stopframe is not None and frame is not self.stopframe and not self.quitting:
            name = frame.f_code.co_filename
            hot = self.hot.get(name)
            if hot is None:
                hot = self.hot[name] = self.canonic(name) in self.breaks
            if not hot:
                return None
        local = Base.trace_dispatch(self, frame, event, arg)
        # Up to 3.9 a frame that keeps its trace function after tracing was
        # switched off reports the line it had then.
        return local if sys.gettrace() is not None else None

    def stop_here(self, frame):
        return frame.f_code.co_filename not in (HERE, bdb.__file__) and Base.stop_here(self, frame)

    def mark(self, frame):
        """Has this frame and its callers traced, so that stepping can stop in them."""
        while frame is not None:
            frame.f_trace = self.trace_dispatch
            if frame.f_code is self.main_code:
                break
            frame = frame.f_back

    def watch(self, frame):
        """Traces from here on, in this frame and its callers."""
        self.mark(frame)
        self.trace()

    def trace(self):
        if hasattr(self, "start_trace"):  # 3.14
            self.start_trace()
        else:
            sys.settrace(self.trace_dispatch)

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
        """breakpoint() and pdb.set_trace() in the program."""
        if not self.mine() or self.state != RUNNING:
            return
        frame = frame or sys._getframe().f_back
        self.set_step()
        self.watch(frame)

    def on_interrupt(self, signum, frame):
        if not self.mine():
            raise KeyboardInterrupt
        if self.state == READING:
            return
        if self.state == COMMAND:
            raise KeyboardInterrupt
        sys.settrace(None)
        inner = frame
        while inner is not None and inner.f_code is not self.main_code:
            if inner.f_code.co_filename in (HERE, bdb.__file__, pdb.__file__):
                break
            inner = inner.f_back
        self.set_step()
        if inner is not None and inner.f_code is self.main_code:
            # Stop here and now: the program may sit in a call that never ends.
            self.event = "line"
            self.interaction(frame, None)
        if self.stopframe is not self.botframe:
            self.watch(frame)
        elif self.breaks:
            self.trace()

    # -- the prompt

    def interaction(self, frame, tb, *rest):
        if not self.mine():
            sys.settrace(None)  # a forked child runs on alone
            return
        with self.lock:
            limit = sys.getrecursionlimit()
            sys.setrecursionlimit(limit + 500)
            self.state = COMMAND
            try:
                if frame is not None:
                    self.announce_hit(frame)
                Base.interaction(self, frame, tb, *rest)
            finally:
                self.state = RUNNING
                if sys.getrecursionlimit() == limit + 500:
                    sys.setrecursionlimit(limit)

    def get_stack(self, frame, tb):
        """Only the program's own frames: nothing of the debugger below them."""
        stack, index = Base.get_stack(self, frame, tb)
        for i in range(len(stack)):
            if stack[i][0].f_code is self.main_code:
                return stack[i:], max(0, index - i)
        return stack, index

    def format_stack_entry(self, frame_lineno, *a, **k):
        entry = Base.format_stack_entry(self, frame_lineno, *a, **k)
        for root in self.source.roots:
            if entry.startswith(root):
                return entry[len(root):]
        return entry

    def cmdloop(self, intro=None):
        self.preloop()
        stop = None
        while not stop:
            self.state = READING
            self.channel.send(self.describe())
            self.refused, self.answer, self.spent = False, {}, []
            message = self.channel.receive()
            self.state = COMMAND
            stop = self.handle(message)
        if self.stopframe is not self.botframe and not self.post_mortem:
            self.mark(self.stack[-1][0])
        self.state = READING  # a late interrupt must not hit the debugger's own code
        self.postloop()

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
        # ";;" is taken apart on the other side, where strings are respected.
        words = line.split(None, 1)
        return Base.precmd(self, line) if words and words[0] in self.aliases else line

    def error(self, msg):
        self.refused = True
        Base.error(self, msg)

    def default(self, line):
        if "\n" not in line:
            return Base.default(self, line)
        try:
            code = ast.parse(line[1:] if line[:1] == "!" else line, "<stdin>")
            code = compile(ast.Interactive(body=code.body), "<stdin>", "single")
            saved = sys.stdout, sys.stdin, sys.displayhook
            sys.stdout, sys.stdin, sys.displayhook = self.stdout, self.stdin, self.displayhook
            try:
                exec(code, self.curframe.f_globals, self.locals())
            finally:
                sys.stdout, sys.stdin, sys.displayhook = saved
        except Exception:
            self.error(traceback.format_exception_only(*sys.exc_info()[:2])[-1].strip())

    def locals(self):
        cached = getattr(self, "curframe_locals", None)
        return self.curframe.f_locals if cached is None else cached

    def show(self, arg, text):
        if not arg.strip():
            return self.error("An expression is missing: p EXPRESSION")
        try:
            value = eval(arg, self.curframe.f_globals, self.locals())
        except Exception:
            return self.error(traceback.format_exception_only(*sys.exc_info()[:2])[-1].strip())
        try:
            value = text(value)
        except Exception:
            kind = traceback.format_exception_only(*sys.exc_info()[:2])[-1].strip()
            return self.error("the value's own __repr__ raised %s" % kind)
        self.message(value)

    def do_p(self, arg):
        self.show(arg, repr)

    def do_pp(self, arg):
        self.show(arg, pprint.pformat)

    def no(self, arg):
        self.error(self.reasons.get(self.lastcmd.split(None, 1)[0], "This command is not available here."))

    reasons = {
        "interact": "interact needs a person at a keyboard. Use `p EXPRESSION` or `!STATEMENT` instead.",
        "debug": "debug (a debugger inside the debugger) is not available. Set a breakpoint inside the function "
                 "and continue, or use `p EXPRESSION`.",
        "commands": "commands is not available. Set the breakpoint with a condition, or send the commands one by one "
                    "once it is hit.",
    }
    do_interact = do_debug = do_commands = no
    # Done on the other side; what arrives here came through an alias.
    do_run = do_restart = do_quit = do_q = do_exit = do_EOF = no
    do_break = do_b = do_tbreak = do_cl = do_disable = do_enable = do_condition = do_ignore = no

    # -- breakpoints

    def mirror(self, wanted):
        """Makes bdb's breakpoints what the other side's registry says."""
        lost = []
        for key in set(self.points) - {w["id"] for w in wanted}:
            self.drop(key)
        for w in wanted:
            point = self.points.get(w["id"])
            if point is None:
                try:
                    point = self.place(w["id"], self.source.find(w["file"]), w)
                except Refused as e:
                    lost.append([w["id"], str(e)])
                    continue
            point.cond = w.get("condition") or None
            point.enabled, point.ignore = w["enabled"], w.get("ignore", 0)
            point.temporary = w.get("temporary", False)
            self.numbers[point.number] = [w["id"], point.cond, False]
        self.answer["lost"] = lost

    def place(self, key, path, w):
        path = self.canonic(path)
        self.source.check(path, w["line"])
        problem = self.set_break(path, w["line"], w.get("temporary", False), w.get("condition") or None)
        if problem:
            raise Refused(problem)
        point = bdb.Breakpoint.bplist[path, w["line"]][-1]
        point.hits = w.get("hits", 0)
        self.points[key] = point
        self.hot.clear()
        frame = self.curframe
        while frame is not None:  # callers entered before the file was of interest
            if frame.f_trace is None and self.canonic(frame.f_code.co_filename) == path:
                frame.f_trace = self.trace_dispatch
            if frame.f_code is self.main_code:
                break
            frame = frame.f_back
        return point

    def drop(self, key):
        point = self.points.pop(key)
        self.clear_bpbynumber(str(point.number))
        self.hot.clear()

    def do_clear(self, arg):
        """bdb calls this when a temporary breakpoint was hit."""
        for key, point in list(self.points.items()):
            if str(point.number) == arg:
                self.spent.append(key)
                self.numbers[point.number][2] = True
                self.drop(key)

    def resolve(self, w):
        """Finds where a breakpoint written as LINE, FILE:LINE, FUNCTION or FILE:FUNCTION belongs."""
        condition = w.get("condition")
        if condition:
            try:
                compile(condition, "<condition>", "eval")
            except (SyntaxError, ValueError) as e:
                raise Refused("The condition %r is not a Python expression: %s" % (condition, e))
        path, line = self.where_is(w["spec"])
        self.source.check(path, line)
        return {"file": self.source.short(path), "line": line}

    def where_is(self, spec):
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
            return path, self.guarded(self.source.function_in, path, rest.rstrip("()"))
        return self.function(spec[:-2] if spec.endswith("()") else spec)

    def guarded(self, find, path, name):
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
                return path, self.guarded(self.source.function_at, path, code)
        found = self.source.search(name)
        if len(found) == 1:
            return found[0]
        if found:
            raise Refused("%s is ambiguous: %s. Use one of these." % (
                name, ", ".join("%s:%d" % (self.source.short(p), n) for p, n in found[:8])))
        raise Refused("No function %s in the current frame or in the workspace. Use FILE:LINE." % name)

    def announce_hit(self, frame):
        """Says which breakpoint stopped the program, and why if its condition cannot be evaluated."""
        number, self.currentbp = self.currentbp, 0
        if not number or number not in self.numbers or self.event != "line":
            return
        key, cond, gone = self.numbers[number]
        self.message("Breakpoint %d hit%s." % (key, " (temporary: now removed)" if gone else ""))
        if not cond:
            return
        try:
            eval(cond, frame.f_globals, frame.f_locals)
        except Exception:
            kind = traceback.format_exception_only(*sys.exc_info()[:2])[-1].strip()
            self.message("It stopped here because its condition %r raised %s" % (cond, kind))

    # -- what a frame says

    def describe(self):
        frame, line = self.stack[self.curindex]
        path = self.canonic(frame.f_code.co_filename)
        body = self.base(self.event)
        line = line or frame.f_code.co_firstlineno
        body.update(
            file=self.source.short(path), line=line, function=frame.f_code.co_name, depth=self.curindex + 1,
            refused=self.refused, answer=self.answer, post_mortem=self.post_mortem)
        try:
            body["changed"] = os.stat(path).st_mtime > self.started
        except OSError:
            pass  # no such file: code from a string
        try:
            lines = linecache.getlines(frame.f_code.co_filename, frame.f_globals)
        except Exception:
            lines = []
        first = max(1, line - self.context)
        body["first"] = first
        body["lines"] = [text.rstrip("\r\n")[:MAX_LINE] for text in lines[first - 1:line + self.context]]
        return body

    def base(self, event):
        points = [[key, p.hits, p.ignore] for key, p in sorted(self.points.items())]
        return {"event": event, "points": points, "spent": self.spent}


def delegate(shim):
    """pdb.Pdb as the program sees it: everything goes to the one debugger there is."""

    class Delegate(Base):
        def __init__(self, *_, **__):
            Base.__init__(self, stdin=Nothing(), stdout=shim.stdout, nosigint=True, readrc=False)

        def set_trace(self, frame=None, **_):
            shim.set_trace(frame or sys._getframe().f_back)

        def interaction(self, frame, tb, *_):
            shim.event = "exception"
            shim.interaction(frame, tb)

    return Delegate


# --- starting and ending


def load(argv):
    """Returns the code and the names of the main module; sets sys.argv and sys.path."""
    names = {"__name__": "__main__", "__doc__": None, "__package__": None, "__spec__": None,
             "__loader__": None, "__builtins__": builtins, "__annotations__": {}}
    if argv[0] == "-m":
        sys.argv[:] = ["-m"] + argv[2:]
        if sys.path[:1] == [""]:
            sys.path[0] = os.getcwd()
        _, spec, code = runpy._get_module_details(argv[1])
        sys.argv[0] = spec.origin
        names.update(__file__=spec.origin, __cached__=spec.cached, __loader__=spec.loader,
                     __package__=spec.parent, __spec__=spec)
        return code, names
    if argv[0] == "-c":
        sys.argv[:] = ["-c"] + argv[2:]
        linecache.cache["<string>"] = len(argv[1]), None, argv[1].splitlines(True), "<string>"
        return compile(argv[1], "<string>", "exec", 0, True), names
    if argv[0] == "--command":
        argv = [__import__("shutil").which(argv[1]) or argv[1]] + argv[2:]
    sys.argv[:] = argv
    path = os.path.abspath(argv[0])
    folder = os.path.dirname(os.path.realpath(path))
    if os.path.isdir(path):
        path, folder = os.path.join(path, "__main__.py"), path
    if sys.path[:1] == [""]:
        sys.path[0] = folder
    with open(path, "rb") as f:
        text = f.read()
    loader = __import__("importlib.machinery").machinery.SourceFileLoader("__main__", path)
    names.update(__file__=path, __cached__=None, __loader__=loader)
    return compile(text, path, "exec", 0, True), names


def trim(tb, code):
    """The traceback without the debugger's own frames."""
    while tb is not None and tb.tb_frame.f_code is not code:
        tb = tb.tb_next
    return tb


def finish(shim, code):
    """Announces the end; the interpreter's own shutdown (threads, atexit) follows."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if shim.mine():
        shim.channel.send(dict(shim.base("finished"), exit_code=code))


def main():
    channel = Channel()
    config = channel.receive()
    channel.nonce = config["nonce"]
    module = sys.modules["__main__"] = types.ModuleType("__main__")
    root = sys.argv[1]
    try:
        code, names = load(sys.argv[2:])
    except (ImportError, OSError, SyntaxError, ValueError) as e:
        traceback.print_exception(type(e), e, None)
        sys.exit(1)
    module.__dict__.update(names)
    shim = Shim(channel, config, root)
    shim.main_code = code
    pdb.Pdb = delegate(shim)
    if hasattr(sys, "breakpointhook"):
        sys.breakpointhook = lambda *_, **__: shim.set_trace(sys._getframe().f_back)
    signal.signal(signal.SIGINT, shim.on_interrupt)
    try:
        shim.run(code, module.__dict__)
    except SystemExit as e:
        value = e.code
        finish(shim, 0 if value is None else value & 0xFF if isinstance(value, int) else 1)
        raise
    except BaseException as e:
        if not shim.mine():
            raise
        tb = trim(e.__traceback__, code)
        sys.excepthook(type(e), e.with_traceback(tb), tb)
        if tb is not None:
            shim.post_mortem, shim.event = True, "exception"
            shim.interaction(None, tb)
        finish(shim, 1)
        sys.exit(1)
    finish(shim, 0)


main()
