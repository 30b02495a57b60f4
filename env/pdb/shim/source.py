# Finds the files, executable lines and functions where a breakpoint can be.
import ast
import dis
import linecache
import os
import sys
import types
import warnings

MAX_SEARCH = 4000  # files that a search for a function by name reads
SKIPPED_FOLDERS = {"__pycache__", "node_modules", "site-packages"}


class Refused(Exception):
    """The error of a command that the debugger refuses. The model sees its text."""


class Source:
    """Finds files, and the lines at which a breakpoint can stop the program."""

    def __init__(self, root, nominal):
        self.root = os.path.realpath(root)
        self.roots = [r.rstrip("/") + "/" for r in (self.root, root, nominal)]
        self.start = os.getcwd()
        self.loaded = {}  # file of the workspace -> its modification time when it was first seen loaded
        self.modules = 0

    def changed(self, current):
        """Returns the program's files that were modified since it loaded them."""
        if len(sys.modules) != self.modules:
            self.modules = len(sys.modules)
            for module in list(sys.modules.values()):
                if type(module) is types.ModuleType:
                    self.note(vars(module).get("__file__"))
        self.note(current)
        return sorted(self.short(p) for p, then in self.loaded.items() if modified(p) != then)

    def note(self, path):
        if isinstance(path, str) and path not in self.loaded and path.startswith(tuple(self.roots)):
            self.loaded[path] = modified(path)

    def short(self, path):
        for root in self.roots:
            if path.startswith(root):
                return path[len(root):]
        return path

    def full(self, short):
        """Returns the absolute path for a path that short() returned."""
        return os.path.join(self.root, short)

    def find(self, name):
        names = [name]
        if not name.endswith(".py"):
            module = name.replace(".", "/")
            names += [name + ".py", module + ".py", module + "/__init__.py"]
        for n in names:
            n = self.short(n)
            for folder in [self.root, self.start] + [p or self.start for p in sys.path if isinstance(p, str)]:
                path = os.path.join(self.start, folder, n)
                if os.path.isfile(path):
                    return os.path.realpath(path)
        raise Refused("No file %s in the workspace or on sys.path. Give a path relative to the workspace." % name)

    def imported(self, name):
        """Finds MODULE.FUNCTION in a module on sys.path that the program has not imported yet."""
        parts = name.split(".")
        for i in range(len(parts) - 1, 0, -1):
            try:
                path = self.find(".".join(parts[:i]))
                return [(path, self.function_in(path, ".".join(parts[i:])))]
            except (Refused, SyntaxError, ValueError, RecursionError):
                pass
        return []

    def lines(self, path):
        lines = linecache.getlines(path)
        if not lines:
            linecache.checkcache(path)
            lines = linecache.getlines(path)
        return lines

    def compiled(self, path, flags=0):
        with warnings.catch_warnings():  # the program's own run shows the compiler's warnings
            warnings.simplefilter("ignore")
            return compile("".join(self.lines(path)), path, "exec", flags, True)

    def executable(self, path):
        """Returns the numbers of the lines that have code, or None if the file does not compile."""
        try:
            code = self.compiled(path)
        except (SyntaxError, ValueError, RecursionError):
            return None
        found, todo = set(), [code]
        while todo:
            code = todo.pop()
            found.update(line for _, line in dis.findlinestarts(code) if line)
            todo += [c for c in code.co_consts if isinstance(c, types.CodeType)]
        return found

    def check(self, path, line):
        """Raises Refused if the program can never stop at the line."""
        lines, short = self.lines(path), self.short(path)
        if not lines:
            raise Refused("%s is empty or cannot be read." % short)
        executable = self.executable(path)
        if executable is None:
            text = lines[line - 1].strip() if 0 < line <= len(lines) else ""
            if text and not text.startswith("#"):
                return
            executable = {i for i, text in enumerate(lines, 1) if text.strip() and not text.strip().startswith("#")}
        if line in executable:
            return
        why = "is blank, a comment or only part of a statement"
        if line < 1 or line > len(lines):
            why = "does not exist: the file has %d line%s" % (len(lines), "s" if len(lines) != 1 else "")
        near = sorted(executable, key=lambda n: (abs(n - line), n))[:1]
        hint = " The nearest line that can be stopped at is %d: %s" % (
            near[0], lines[near[0] - 1].strip()[:120]) if near else ""
        raise Refused("Line %d of %s %s.%s" % (line, short, why, hint))

    def functions(self, path):
        """Yields (qualified name, first line including decorators, first line of the body)."""
        todo = [("", self.compiled(path, ast.PyCF_ONLY_AST))]
        while todo:
            prefix, node = todo.pop()
            for child in ast.iter_child_nodes(node):
                name = prefix
                if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                    name = prefix + child.name + "."
                    if not isinstance(child, ast.ClassDef):
                        body = child.body
                        while len(body) > 1 and is_bare(body[0]):
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
        """Finds the functions with a name in the files of the workspace, imported or not."""
        found, seen = [], 0
        definition = ("def " + name.split(".")[-1]).encode()
        for folder, folders, files in os.walk(self.root):
            folders[:] = sorted(f for f in folders if not f.startswith(".") and f not in SKIPPED_FOLDERS
                                and not os.path.exists(os.path.join(folder, f, "pyvenv.cfg"))
                                and (f not in ("build", "dist") or os.path.exists(os.path.join(folder, f, "__init__.py"))))
            for file in sorted(files):
                if not file.endswith(".py") or seen >= MAX_SEARCH:
                    continue
                seen += 1
                path = os.path.join(folder, file)
                try:
                    with open(path, "rb") as f:
                        if definition not in f.read(1 << 20):
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


def modified(path):
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return None


def is_bare(node):
    """Returns whether a statement in a function compiles to no code."""
    if isinstance(node, (ast.Global, ast.Nonlocal)) or isinstance(node, ast.AnnAssign) and node.value is None:
        return True
    if not isinstance(node, ast.Expr):
        return False
    if isinstance(node.value, getattr(ast, "Constant", ())):
        return isinstance(node.value.value, str)
    return type(node.value).__name__ == "Str"  # up to 3.7


def first_line(node):
    return min([node.lineno] + [d.lineno for d in getattr(node, "decorator_list", [])])
