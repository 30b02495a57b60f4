"""Operators d1, d2, d4 and d5 remove assignments, calls, exceptions and results."""
import ast

from phrases import remove_statement
from registry import Change, operator
from scope import dotted_name
from trees import clone, same


def is_generator(scope):
    return any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in scope.all())


@operator("d1", "removal", "assignment removed", "a value is stale, or a name is not defined",
          ast.Assign, ast.AugAssign, ast.AnnAssign)
def assignment(src, node, scope):
    if not scope.function or isinstance(node, ast.AnnAssign) and node.value is None:
        return
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    if len(targets) != 1 or isinstance(targets[0], (ast.Tuple, ast.List, ast.Starred)):
        return
    target = targets[0]
    if isinstance(node, ast.AugAssign) and isinstance(node.value, ast.Constant) and node.value.value in (0, ""):
        return
    if isinstance(target, ast.Name):
        if target.id in scope.shared() or not scope.read_inside(target.id) or not scope.bound_before(target.id, src.start(node)):
            return
        if isinstance(node, ast.Assign) and same(clone(target, ctx=ast.Load()), node.value):
            return
    yield Change(*remove_statement(src, node))


@operator("d2", "removal", "call removed", "a side effect is missing", ast.Expr)
def call(src, node, scope):
    value = node.value.value if isinstance(node.value, ast.Await) else node.value
    if not isinstance(value, ast.Call) or not scope.function:
        return
    if isinstance(value.func, ast.Attribute) and isinstance(value.func.value, ast.Call) and dotted_name(value.func.value) == "super":
        return  # o2
    yield Change(*remove_statement(src, node))


def is_abstract(scope):
    """Returns whether a function only raises NotImplementedError, to be overridden."""
    body = scope.node.body
    rest = [s for s in body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
    return len(rest) == 1 and isinstance(rest[0], ast.Raise) and "NotImplemented" in ast.dump(rest[0])


@operator("d4", "removal", "exception swallowed", "a result is wrong without any error", ast.Raise, ast.ExceptHandler)
def swallow(src, node, scope):
    if not scope.function or is_abstract(scope):
        return
    if isinstance(node, ast.Raise):
        yield Change(*remove_statement(src, node))
        return
    if len(node.body) == 1 and isinstance(node.body[0], ast.Pass) or isinstance(node._parent, getattr(ast, "TryStar", ())):
        return
    if node is not node._parent.handlers[-1]:
        return  # a handler for Exception would hide the handlers after it
    first, last = src.start(node.body[0]), src.end(node.body[-1])
    colon = src.start(node) + len(b"except")
    if node.type is not None:
        colon = src.outer(node.type, colon)[1]
        if node.name:
            colon = src.find(b":", colon)
    begin = src.start(node) + len(b"except")
    yield Change([(begin, colon, b" Exception"), (first, last, b"pass")],
                 [(node, ast.ExceptHandler(type=ast.Name(id="Exception", ctx=ast.Load()), name=None, body=[ast.Pass()]))])


@operator("d5", "removal", "result of a function removed or replaced", "None or an old value appears elsewhere",
          ast.Return)
def result(src, node, scope):
    value = node.value
    if value is None or isinstance(value, ast.Constant) and value.value is None or not scope.function or is_generator(scope):
        return
    begin, end = src.outer(value, src.start(node))
    yield Change([(begin, end, b"None")], [(value, ast.Constant(value=None, kind=None))], obvious=True)
    if src.line_of(end) > src.line_of(begin) + 2:
        return  # a long expression that is gone is obvious
    kind = scope.kind_of(value)
    names = [n for n in scope.bound() if n not in ("self", "cls", "_") and scope.bound_before(n, src.start(node)) and scope.always_bound(n, node)]
    for name in sorted(names, key=lambda n: -max(at for at in scope.bound()[n] if at < src.start(node)))[:6]:
        if any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(value)) and isinstance(value, ast.Name):
            continue
        if kind and kind in scope.kinds().get(name, ()) or not kind and isinstance(value, ast.Name) and not scope.kinds().get(name, {""}) - {""}:
            yield Change([(begin, end, name.encode("utf-8"))], [(value, ast.Name(id=name, ctx=ast.Load()))],
                         obvious=not isinstance(value, ast.Name))
            return
