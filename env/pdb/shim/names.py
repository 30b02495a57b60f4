# Evaluates commands and breakpoint conditions like code of the program. With plain eval and exec,
# comprehensions and lambdas could not see the local names.
import ast
import bdb
import pprint
import sys
import traceback


class View:
    """A frame whose globals include its local names."""

    def __init__(self, frame, local):
        self.frame, self.f_globals, self.f_locals = frame, frame.f_globals, local
        if local is not frame.f_globals:
            self.f_globals = dict(frame.f_globals)
            self.f_globals.update(local)

    def __getattr__(self, name):
        return getattr(self.frame, name)


class Names:
    """The part of Shim that concerns names and values."""

    def break_here(self, frame):
        place = self.canonic(frame.f_code.co_filename), frame.f_lineno
        if any(point.cond for point in bdb.Breakpoint.bplist.get(place, ())):
            frame = View(frame, frame.f_locals)
        return Base.break_here(self, frame)

    def _getval(self, arg):
        frame, self.curframe = self.curframe, View(self.curframe, self.locals())
        try:
            return Base._getval(self, arg)
        finally:
            self.curframe = frame

    def _getval_except(self, arg, frame=None):
        local = self.locals() if frame is None else frame.f_locals
        return Base._getval_except(self, arg, View(frame or self.curframe, local))

    def default(self, line):
        """Runs statements. Inside a function, their globals include the local names, so that nested scopes see them."""
        frame, local = self.curframe, self.locals()
        try:
            nodes = [ast.parse(line[1:] if line[:1] == "!" else line)]
            for node in nodes:
                nodes.extend(ast.iter_child_nodes(node))
        except (SyntaxError, ValueError, RecursionError):
            nodes = []
        kinds = {type(node) for node in nodes}
        if local is frame.f_globals or not kinds or kinds & {ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef}:
            return self.execute(line)
        view = View(frame, local)
        names = view.f_locals = view.f_globals
        before = dict(names)
        kept = {"curframe_locals"} & set(vars(self))  # up to 3.13
        self.curframe = view
        vars(self).update(dict.fromkeys(kept, names))
        try:
            self.execute(line)
        finally:
            self.curframe = frame
            vars(self).update(dict.fromkeys(kept, local))
            self.store_back(before, names, local, {n for node in nodes if isinstance(node, ast.Global) for n in node.names})

    def store_back(self, before, names, local, declared_global):
        """Copies the names that statements assigned or deleted back into the program's namespaces."""
        for name in [n for n in names if n not in before or names[n] is not before[n]]:
            (self.curframe.f_globals if name in declared_global else local)[name] = names[name]
        for name in set(before) - set(names):
            del (self.curframe.f_globals if name in declared_global else local)[name]

    def execute(self, line):
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
        cached = vars(self).get("curframe_locals")  # up to 3.13; later versions warn when it is read as an attribute
        return self.curframe.f_locals if cached is None else cached

    def show(self, arg, text):
        if not arg.strip():
            return self.error("An expression is missing: p EXPRESSION")
        try:
            value = eval(arg, View(self.curframe, self.locals()).f_globals, self.locals())
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
