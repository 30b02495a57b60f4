"""Scopes of names, types of values as far as the source shows them, and the nodes that operators skip.

Operators skip nodes where no test would notice a bug or where the bug would be obvious: docstrings, annotations,
decorators, literal patterns, f-strings (whose positions are wrong before Python 3.12), names such as __all__ and
__version__, blocks for type checkers and `python -m`, log calls, assertions, and unreachable code.
"""
import ast
import re
from itertools import takewhile

from trees import children, definitions, has_docstring

FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
LOOP = (ast.For, ast.AsyncFor, ast.While)
WITH = (ast.With, ast.AsyncWith)
JUMP = (ast.Return, ast.Raise, ast.Continue, ast.Break)
FIXED = (ast.JoinedStr,) + tuple(getattr(ast, n) for n in ("TemplateStr", "TypeAlias", "match_case") if hasattr(ast, n))
LOG_METHODS = {"debug", "info", "warning", "warn", "error", "exception", "critical", "log", "fatal"}
TYPING = {"TypeVar", "NewType", "ParamSpec", "TypedDict", "NamedTuple", "Literal", "cast", "TypeVarTuple"}
STATIC = re.compile(r"^(__\w+__|VERSION|version|__slots__)$")


class Scope:
    """A function, or the body of a class or module, with information about its names."""

    def __init__(self, src, node, outer, qualified, types):
        self.src, self.node, self.outer, self.name, self.types = src, node, outer, qualified, types
        self.function = isinstance(node, FUNCTION)
        self._all = self._bound = self._kinds = None

    @property
    def owner(self):
        """The class if this scope is a method, or None."""
        return self.outer.node if self.function and isinstance(self.outer.node, ast.ClassDef) else None

    def all(self):
        """Returns all nodes of the body in source order, without the bodies of nested functions."""
        if self._all is None:
            self._all, stack = [], [(self.node, True)]
            while stack:
                node, enter = stack.pop()
                self._all.append(node)
                if enter:
                    stack.extend((c, not isinstance(c, FUNCTION + (ast.ClassDef, ast.Lambda))) for _, c in reversed(list(children(node))))
        return self._all

    def bound(self):
        """Returns name -> offsets at which it is bound. Parameters are bound at the start of the function."""
        if self._bound is None:
            self._bound = {}
            for node in self.all():
                if isinstance(node, ast.arg):
                    self._bound.setdefault(node.arg, []).append(self.src.start(self.node))
                elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    self._bound.setdefault(node.id, []).append(self.src.start(node))
        return self._bound

    def bound_before(self, name, offset):
        return any(at < offset for at in self.bound().get(name, ()))

    def always_bound(self, name, node):
        """Returns whether a variable has a value whenever the function reaches a node: it is a parameter, or an earlier
        statement of an enclosing block binds it, or a loop, with or comprehension around the node does."""
        while node is not self.node:
            parent, field = node._parent, node._field
            around = [parent] + (getattr(parent, "generators", []) if field != "generators" else [])
            if field not in ("iter", "items", "orelse") and any(binds(n, name) for n in around):
                return True
            block = getattr(parent, field, None)
            if isinstance(node, ast.stmt) and isinstance(block, list) and any(always_binds(s, name) for s in takewhile(lambda s: s is not node, block)):
                return True
            node = parent
        return any(isinstance(n, ast.arg) and n.arg == name for n in ast.walk(self.node.args))

    def shared(self):
        """Returns the names that are declared global or nonlocal."""
        return {n for node in self.all() if isinstance(node, (ast.Global, ast.Nonlocal)) for n in node.names}

    def read_inside(self, name):
        """Returns whether this scope or a nested function reads the name."""
        return any(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load) for n in ast.walk(self.node))

    def kinds(self):
        """Returns name -> type names of its values, from a recorded run if there is one and from the source
        otherwise."""
        if self._kinds is None:
            self._kinds = {}
            for node in self.all():
                for target, value in bindings(node):
                    if isinstance(target, ast.Name):
                        self._kinds.setdefault(target.id, set()).add(kind(value))
                if isinstance(node, ast.arg) and isinstance(node.annotation, ast.Name):
                    self._kinds.setdefault(node.arg, set()).add(node.annotation.id)
            for name, seen in self.types.get(self.name, {}).items():
                self._kinds[name] = set(seen)
        return self._kinds

    def kind_of(self, node):
        """Returns the name of an expression's type, or "" if the source does not show it."""
        if isinstance(node, ast.Name):
            found = self.kinds().get(node.id, set())
            return next(iter(found)) if len(found) == 1 else ""
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)):
            left, right = self.kind_of(node.left), self.kind_of(node.right)
            return left if left == right or left in ("str", "list") else ""
        return kind(node)

    def is_int(self, node):
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
            return self.is_int(node.left) or self.is_int(node.right)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return self.is_int(node.operand)
        return self.kind_of(node) == "int"


def binds(node, name):
    """Returns whether a node itself, and not a statement inside of it, assigns to a variable."""
    targets = ()
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)) or isinstance(node, ast.AnnAssign) and node.value is not None:
        targets = [node.target]
    elif isinstance(node, WITH):
        targets = [i.optional_vars for i in node.items if i.optional_vars is not None]
    return any(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store) for t in targets for n in ast.walk(t))


def always_binds(stmt, name):
    """Returns whether a variable has a value after a statement that does not leave the block."""
    def block(body):
        return any(always_binds(s, name) for s in body) or bool(body) and always_leaves(body[-1])

    if isinstance(stmt, ast.If):
        return block(stmt.body) and block(stmt.orelse)
    if hasattr(stmt, "handlers"):
        return block(stmt.finalbody) or block(stmt.body) and all(block(h.body) for h in stmt.handlers)
    return binds(stmt, name) and not isinstance(stmt, LOOP) or isinstance(stmt, WITH) and block(stmt.body)


COUNTS = ("int", "len", "ord", "hash", "id")
GIVES = {"str": "str", "repr": "str", "list": "list", "dict": "dict", "set": "set", "tuple": "tuple", "float": "float",
         "bool": "bool", "sorted": "list", "bytes": "bytes", "frozenset": "frozenset"}
METHODS = {"split": "list", "splitlines": "list", "join": "str", "strip": "str", "lower": "str", "upper": "str", "format": "str",
           "replace": "str", "encode": "bytes", "decode": "str", "index": "int", "find": "int", "count": "int"}
DISPLAYS = {ast.List: "list", ast.ListComp: "list", ast.Dict: "dict", ast.DictComp: "dict", ast.Set: "set", ast.SetComp: "set",
            ast.Tuple: "tuple", ast.JoinedStr: "str", ast.GeneratorExp: "generator", ast.Lambda: "function"}


def kind(node):
    if isinstance(node, ast.Constant):
        return "" if node.value is None else type(node.value).__name__
    if isinstance(node, ast.UnaryOp):
        return "bool" if isinstance(node.op, ast.Not) else kind(node.operand)
    if isinstance(node, ast.Compare):
        return "bool"
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name):
            return "int" if node.func.id in COUNTS else GIVES.get(node.func.id, "")
        if isinstance(node.func, ast.Attribute):
            return METHODS.get(node.func.attr, "")
    return DISPLAYS.get(type(node), "")


INT = ast.Constant(value=0, kind=None)
UNKNOWN = ast.Constant(value=None, kind=None)


def bindings(node):
    """Yields (target, value) for each target that a node binds. The value is UNKNOWN if the source does not show it."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple) and len(target.elts) == len(node.value.elts):
                yield from zip(target.elts, node.value.elts)
            elif isinstance(target, (ast.Tuple, ast.List)):
                yield from ((t, UNKNOWN) for t in target.elts)
            else:
                yield target, node.value
    elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)):
        yield node.target, node.value or UNKNOWN
    elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
        call = node.iter.func.id if isinstance(node.iter, ast.Call) and isinstance(node.iter.func, ast.Name) else ""
        if call == "range":
            yield node.target, INT
        elif isinstance(node.target, ast.Tuple):
            for i, t in enumerate(node.target.elts):
                yield t, INT if call == "enumerate" and i == 0 else UNKNOWN
        else:
            yield node.target, UNKNOWN
    elif isinstance(node, ast.withitem) and node.optional_vars is not None:
        yield node.optional_vars, UNKNOWN


def dotted_name(node):
    """Returns the dotted name of a callee or an expression, or "" if it is not a dotted name."""
    parts, node = [], node.func if isinstance(node, ast.Call) else node
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id] + parts[::-1]) if isinstance(node, ast.Name) else ""


def makes_empty(node, constructors=("list", "dict", "set")):
    """Returns whether an expression creates an empty container."""
    if isinstance(node, (ast.List, ast.Set)):
        return not node.elts
    if isinstance(node, ast.Dict):
        return not node.keys
    return isinstance(node, ast.Call) and not node.args and not node.keywords and dotted_name(node) in constructors


def is_log(node):
    if not isinstance(node, ast.Call):
        return False
    parts = dotted_name(node).lower().split(".")
    if parts[0] == "warnings" or parts[-1] == "log" and len(parts) == 1:
        return True
    return len(parts) > 1 and parts[-1] in LOG_METHODS and ("log" in parts[-2] or parts[-2] in ("logging", "warnings"))


def constant_condition(test):
    """Returns the value that a condition always has in a run, or None if the value may vary."""
    if isinstance(test, ast.Constant):
        return bool(test.value)
    text = dotted_name(test) if isinstance(test, (ast.Name, ast.Attribute)) else ""
    if text in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
        return False
    if isinstance(test, ast.Compare):
        left = dotted_name(test.left) if isinstance(test.left, (ast.Name, ast.Attribute)) else ""
        if left == "__name__":
            return False
        first = test.left.value if isinstance(test.left, ast.Subscript) else test.left
        if isinstance(first, (ast.Name, ast.Attribute)) and dotted_name(first) in ("sys.version_info", "sys.platform", "os.name", "sys.maxsize"):
            return False
    return None


def is_skipped(node, field, child):
    """Returns whether operators skip a child; see the docstring of the module."""
    if isinstance(child, FIXED):
        return True
    if field in ("decorator_list", "annotation", "returns", "type_params", "bases", "keywords") and not (field == "keywords" and isinstance(node, ast.Call)):
        return True
    if isinstance(child, ast.Assert) or isinstance(child, ast.Expr) and (isinstance(child.value, ast.Constant) or is_log(child.value)):
        return True
    if isinstance(child, FUNCTION) and any(dotted_name(d if not isinstance(d, ast.Call) else d.func).split(".")[-1] in ("overload", "abstractmethod")
                                           for d in child.decorator_list):
        return True
    if isinstance(child, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
        targets = child.targets if isinstance(child, ast.Assign) else [child.target]
        if any(isinstance(t, ast.Name) and STATIC.match(t.id) for t in targets):
            return True
        if isinstance(child.value, ast.Call) and dotted_name(child.value).split(".")[-1] in TYPING:
            return True
    if isinstance(child, ast.Call) and (dotted_name(child).split(".")[-1] in TYPING or is_log(child)):
        return True
    if isinstance(node, (ast.If, ast.IfExp, ast.While)) and constant_condition(node.test) is not None:
        return field == "test" or (field == "body") != constant_condition(node.test)
    return isinstance(node, ast.Call) and dotted_name(node) == "super"


def reachable(body):
    """Yields the statements of a block up to the first statement that always leaves the block."""
    for stmt in body:
        yield stmt
        if always_leaves(stmt):
            return


def always_leaves(stmt):
    if isinstance(stmt, ast.If):
        return bool(stmt.orelse) and always_leaves(stmt.body[-1]) and always_leaves(stmt.orelse[-1])
    if isinstance(stmt, ast.While):
        return constant_condition(stmt.test) is True and not any(isinstance(n, ast.Break) for n in ast.walk(stmt))
    return isinstance(stmt, JUMP)


def dead_assignment(stmt, scope):
    """Returns whether a statement only assigns to variables that are never read."""
    if not scope.function or not isinstance(stmt, ast.Assign) or any(isinstance(n, (ast.Call, ast.Await, ast.Yield)) for n in ast.walk(stmt.value)):
        return False
    return all(isinstance(t, ast.Name) and t.id not in scope.shared() and not scope.read_inside(t.id) for t in stmt.targets)


def mutable_nodes(src, types):
    """Yields (node, scope) for each node that operators may change, in source order. Sets _parent and _field of the
    nodes."""
    top = Scope(src, src.tree, None, "<module>", types)
    names = {id(node): name for name, node in definitions(src.tree)}
    src.tree._parent, src.tree._field = None, ""
    stack = [(src.tree, top)]
    while stack:
        node, scope = stack.pop()
        if node is not src.tree:
            yield node, scope
        below = scope
        if isinstance(node, FUNCTION + (ast.ClassDef,)):
            below = Scope(src, node, scope, names[id(node)], types)
        live = {}
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if isinstance(block, list):
                live[field] = set(map(id, reachable(block)))
                if field == "body" and has_docstring(block):
                    live[field].discard(id(block[0]))
        found = []
        for field, child in children(node):
            if field in live and id(child) not in live[field] or is_skipped(node, field, child) or dead_assignment(child, below):
                continue
            child._parent, child._field = node, field
            found.append((child, below if field in ("body", "args") else scope))
        stack.extend(reversed(found))


def block_of(node):
    """Returns the list of statements that contains a statement."""
    parent = node._parent
    for field in ("body", "orelse", "finalbody", "handlers"):
        block = getattr(parent, field, None)
        if isinstance(block, list) and any(item is node for item in block):
            return block
    return [node]


def enclosing(node, kinds, stop=FUNCTION + (ast.ClassDef, ast.Lambda)):
    """Returns the nearest enclosing node of these kinds within the function, or None."""
    node = node._parent
    while node is not None and not isinstance(node, kinds):
        if isinstance(node, stop):
            return None
        node = node._parent
    return node


def attributes(owner):
    """Returns attribute -> type name of the values that methods of a class assign to the attribute of self. The type
    name is "" if the source does not show it."""
    if not hasattr(owner, "_data"):
        owner._data = {}
        methods = {n.name for n in owner.body if isinstance(n, FUNCTION)}
        for node in ast.walk(owner):
            for target, value in bindings(node):
                if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self" and target.attr not in methods:
                    seen = owner._data.get(target.attr)
                    now = kind(value)
                    owner._data[target.attr] = now if seen in (None, "", now) else seen
    return owner._data
