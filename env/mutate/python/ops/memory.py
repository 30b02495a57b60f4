"""Operators m1 to m3 cause aliasing, stale state, and exhausted iterators."""
import ast
import re

from phrases import drop_last_element, remove_statement, replace_expression
from registry import Change, operator
from scope import LOOP, dotted_name, makes_empty
from trees import clone, name

BOOKS = re.compile(r"cache|memo|dirty|stale|seen|visited|version|registry|index|pending|count|total|size|length", re.I)
CACHE = re.compile(r"cache|memo|registry", re.I)


CONTAINERS = ("list", "dict", "set", "deque", "bytearray", "Counter", "OrderedDict")


@operator("m1", "aliasing", "copy removed, or an object created once for all iterations", "a change has an effect elsewhere",
          ast.Call, ast.Subscript, ast.Assign)
def alias(src, node, scope):
    if isinstance(node, ast.Assign):
        yield from hoist(src, node, scope)
        return
    if isinstance(node, ast.Subscript):
        s = node.slice
        if isinstance(s, ast.Slice) and s.lower is s.upper is s.step is None and isinstance(node.ctx, ast.Load) and scope.kind_of(node.value) != "str":
            end = src.outer(node.value, src.start(node), src.find(b"[", src.end(node.value)))[1]
            yield Change([(end, src.end(node), b"")], [(node, node.value)])
        return
    func, one = node.func, len(node.args) == 1 and not node.keywords
    if isinstance(func, ast.Attribute) and func.attr == "copy" and not node.args and not node.keywords and not isinstance(node._parent, ast.Expr):
        end = src.outer(func.value, src.start(node), src.find(b".", src.end(func.value)))[1]
        yield Change([(end, src.end(node), b"")], [(node, func.value)])
    elif dotted_name(node) == "copy.deepcopy" and one:
        at = src.end(func)
        yield Change([(at - len(b"deepcopy"), at, b"copy")], [(func, clone(func, attr="copy"))])
    elif dotted_name(node) in ("deepcopy", "list", "dict", "set") and one and isinstance(node.args[0], (ast.Name, ast.Attribute)):
        kind = scope.kind_of(node.args[0])
        if kind == dotted_name(node) or not kind and not isinstance(node._parent, (ast.BinOp, ast.Compare, ast.Subscript, ast.Attribute)):
            yield replace_expression(src, node, node.args[0])


def hoist(src, node, scope):
    """Yields a Change that moves `row = []` from the body of a loop to before the loop."""
    loop = node._parent
    if not isinstance(loop, LOOP) or node._field != "body" or not makes_empty(node.value, CONTAINERS) or len(node.targets) != 1 or not isinstance(node.targets[0], ast.Name):
        return
    lines = src.whole_lines(src.start(node), src.end(node))
    first = src.start(loop)
    if lines is None or len(loop.body) < 2 or src.data[src.lines[src.line_of(first) - 1]:first] != src.indent(first):
        return
    text = src.text(node) + src.newline() + src.indent(first)
    body = [s for s in loop.body if s is not node]
    yield Change([(first, first, text), (lines[0], lines[1], b"")], [(loop, [clone(node), clone(loop, body=body)])])


@operator("m2", "bookkeeping", "cache or count not updated, or shared by all instances", "results are right at first and wrong later or elsewhere",
          ast.Expr, ast.Assign, ast.AugAssign, ast.Delete)
def drop_update(src, node, scope):
    if not scope.function:
        return
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute):
        func = node.value.func
        if func.attr in ("cache_clear", "invalidate", "pop", "clear", "discard", "remove", "add", "popitem") and \
                (func.attr in ("cache_clear", "invalidate") or BOOKS.search(dotted_name(func.value) or "")):
            yield Change(*remove_statement(src, node), obvious=True)
    elif isinstance(node, ast.Delete):
        target = node.targets[0]
        if len(node.targets) == 1 and isinstance(target, ast.Subscript) and CACHE.search(dotted_name(target.value) or ""):
            yield Change(*remove_statement(src, node), obvious=True)
    elif isinstance(node, (ast.Assign, ast.AugAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        target = targets[0]
        if isinstance(target, ast.Attribute) and scope.node.name != "__init__":
            reset = isinstance(node, ast.AugAssign) or makes_empty(node.value, CONTAINERS) or isinstance(node.value, ast.Constant)
            if len(targets) == 1 and reset and BOOKS.search(target.attr):
                yield Change(*remove_statement(src, node), obvious=True)
        elif isinstance(node, ast.Assign) and scope.node.name == "__init__":
            yield from share_attribute(src, node, scope)
        if isinstance(node, ast.Assign):
            yield from narrow_key(src, node)


def narrow_key(src, node):
    """Yields a Change that removes b from `key = (a, b)`, so that different entries share a key."""
    target, value = node.targets[0], node.value
    if isinstance(target, ast.Name) and re.search(r"key|signature", target.id) and isinstance(value, ast.Tuple):
        change = drop_last_element(src, value)
        if change:
            yield change


def share_attribute(src, node, scope):
    """Yields a Change that moves `self.x = []` from __init__ to the class as `x = []`."""
    target, owner, init = node.targets[0], scope.owner, scope.node
    if owner is None or len(node.targets) != 1 or not makes_empty(node.value, CONTAINERS) or not isinstance(target, ast.Attribute) or init.decorator_list:
        return
    if not (isinstance(target.value, ast.Name) and target.value.id == "self") or node._parent is not init or not isinstance(init, ast.FunctionDef):
        return
    first = src.start(init)
    if src.data[src.lines[src.line_of(first) - 1]:first] != src.indent(first):
        return
    edits, swaps = remove_statement(src, node)
    name_text = target.attr.encode()
    text = name_text + b" = " + src.text(node.value) + src.newline() * 2 + src.indent(first)
    made = ast.Assign(targets=[name(target.attr)], value=node.value, type_comment=None)
    yield Change([(first, first, text)] + edits, [(init, [made, init])] + swaps)


@operator("m3", "exhaustion", "list that is read twice replaced by a generator", "the second pass finds nothing",
          ast.Assign)
def exhausted(src, node, scope):
    if len(node.targets) != 1:
        return
    target, value = node.targets[0], node.value
    if not is_read_twice(target, node, scope):
        return
    if isinstance(value, ast.ListComp):
        begin, end = src.start(value), src.end(value)
        yield Change([(begin, begin + 1, b"("), (end - 1, end, b")")], [(value, ast.GeneratorExp(elt=value.elt, generators=value.generators))])
    elif isinstance(value, ast.Call) and dotted_name(value) in ("list", "tuple") and len(value.args) == 1 and not value.keywords:
        inside = value.args[0]
        if isinstance(inside, ast.GeneratorExp) and src.start(inside) == src.end(value.func):
            yield Change([(src.start(value), src.end(value.func), b"")], [(value, inside)])
        elif isinstance(inside, ast.Call) and dotted_name(inside) in ("map", "zip", "filter", "enumerate", "reversed", "iter"):
            yield replace_expression(src, value, inside)


def is_read_twice(target, node, scope):
    """Returns whether a variable, or an attribute of self, is read at least twice, and never in a way that fails at
    once for a generator (len, an index, an operator) or that returns it."""
    if isinstance(target, ast.Name) and scope.function:
        uses = [n for n in ast.walk(scope.node) if isinstance(n, ast.Name) and n.id == target.id and isinstance(n.ctx, ast.Load)]
        around = scope.node
    elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self" and scope.owner is not None:
        uses = [n for n in ast.walk(scope.owner) if isinstance(n, ast.Attribute) and n.attr == target.attr and isinstance(n.ctx, ast.Load)]
        around = scope.owner
    else:
        return False
    wanted = set(map(id, uses))
    for n in ast.walk(around):
        if isinstance(n, (ast.Subscript, ast.Attribute)) and id(n.value) in wanted:
            return False
        if isinstance(n, ast.Call) and dotted_name(n) in ("len", "isinstance", "repr", "bool") and any(id(a) in wanted for a in n.args):
            return False
        if isinstance(n, (ast.BinOp, ast.Return)) and any(id(c) in wanted for c in ast.iter_child_nodes(n)):
            return False
    return len(uses) > 1
