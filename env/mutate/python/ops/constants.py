"""Operators k2 to k4 change defaults, keys, and the format of values."""
import ast

from phrases import arguments, remove_argument
from registry import Change, operator
from scope import FUNCTION, attributes, dotted_name, makes_empty
from trees import clone, index_expression, same


@operator("k2", "state", "bool, None or empty default changed", "a default is wrong, or calls share state",
          ast.Constant, *FUNCTION)
def default(src, node, scope):
    if isinstance(node, FUNCTION):
        yield from mutable_default(src, node)
    elif isinstance(node.value, bool):
        if isinstance(node._parent, ast.keyword) and node._parent.arg == "reverse":
            return  # k4
        compared = isinstance(node._parent, ast.Compare)  # hardly anybody would write `x is False` for `x is True`
        yield Change([(src.start(node), src.end(node), str(not node.value).encode())], [(node, ast.Constant(value=not node.value, kind=None))],
                     obvious=compared)
    elif node.value == "" and isinstance(node.value, str) and isinstance(node._parent, (ast.Assign, ast.Return, ast.arguments, ast.keyword)):
        yield Change([(src.start(node), src.end(node), b"None")], [(node, ast.Constant(value=None, kind=None))], obvious=True)


def mutable_default(src, node):
    """Changes the default `x=None` to `x=[]`, which all calls share, in a function with `if x is None: x = []`."""
    a = node.args
    pairs = list(zip((getattr(a, "posonlyargs", []) + a.args)[::-1], a.defaults[::-1])) + list(zip(a.kwonlyargs, a.kw_defaults))
    for arg, value in pairs:
        if not isinstance(value, ast.Constant) or value.value is not None:
            continue
        for stmt in node.body[:8]:
            if isinstance(stmt, ast.If) and isinstance(stmt.test, ast.Compare) and isinstance(stmt.test.ops[0], ast.Is) and \
                    isinstance(stmt.test.left, ast.Name) and stmt.test.left.id == arg.arg and len(stmt.body) == 1 and not stmt.orelse:
                made = stmt.body[0]
                if isinstance(made, ast.Assign) and isinstance(made.targets[0], ast.Name) and made.targets[0].id == arg.arg and makes_empty(made.value):
                    yield Change([(src.start(value), src.end(value), src.text(made.value))], [(value, made.value)])


def is_string(node):
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


@operator("k3", "key", "key or attribute replaced by another", "a KeyError, or silently the wrong entry",
          ast.Subscript, ast.Dict, ast.Attribute)
def key(src, node, scope):
    if isinstance(node, ast.Subscript):
        own = index_expression(node.slice)
        others = []
        if is_string(own):
            for n in scope.all():
                if isinstance(n, ast.Subscript) and is_string(index_expression(n.slice)) and same(n.value, node.value):
                    others.append(index_expression(n.slice))
        yield from other(src, own, own.value if is_string(own) else "", [(o.value, o) for o in others])
    elif isinstance(node, ast.Dict):
        for i in range(len(node.keys) - 1):
            one, two = node.keys[i], node.keys[i + 1]
            if is_string(one) and is_string(two) and one.value != two.value and not same(node.values[i], node.values[i + 1]):
                keys = node.keys[:i] + [two, one] + node.keys[i + 2:]
                yield Change([(src.start(one), src.end(one), src.text(two)), (src.start(two), src.end(two), src.text(one))],
                             [(node, clone(node, keys=keys))])
    elif isinstance(node.ctx, ast.Load) and isinstance(node.value, ast.Name) and node.value.id == "self" and scope.owner is not None:
        known = attributes(scope.owner)
        kind = known.get(node.attr)
        alike = [n for n in known if kind is not None and known[n] == kind]
        if isinstance(node._parent, ast.Call) and node._parent.func is node or node.attr not in alike or len(alike) < 2:
            return
        if not kind and isinstance(node._parent, (ast.Attribute, ast.Subscript)):
            return  # most likely of another class
        new = alike[(alike.index(node.attr) + 1) % len(alike)]
        if any(isinstance(n, ast.Attribute) and n is not node and n.attr == new for n in ast.iter_child_nodes(node._parent)):
            return  # f(self.x, self.x) and self.x < self.x are obvious
        yield Change([(src.end(node) - len(node.attr.encode()), src.end(node), new.encode())], [(node, clone(node, attr=new))])


def other(src, node, value, keys):
    """Yields a Change that replaces a key by the next different key in alphabetical order."""
    names = sorted({k for k, _ in keys} - {value})
    if names:
        new = next((n for n in names if n > value), names[0])
        tree = next(t for k, t in keys if k == new)
        yield Change([(src.start(node), src.end(node), src.text(tree))], [(node, tree)])


SORTS = ("sorted", "sort", "min", "max", "nlargest", "nsmallest", "insort")
TRIMS = ("strip", "lstrip", "rstrip", "lower", "upper", "casefold", "title", "capitalize", "rstrip")


@operator("k4", "format", "rounding, trimming, order or encoding removed or changed", "values look right but compare as different",
          ast.Call)
def form(src, node, scope):
    name = node.func.attr if isinstance(node.func, ast.Attribute) else dotted_name(node)
    found = arguments(src, node)
    for i, a in enumerate(found):
        if isinstance(a.node, ast.keyword) and a.node.arg in ("key", "reverse") and name in SORTS:
            yield remove_argument(src, node, i)
        value = a.node.value if isinstance(a.node, ast.keyword) else a.node
        encoded = isinstance(a.node, ast.keyword) and a.node.arg == "encoding" or name in ("encode", "decode")
        if encoded and is_string(value) and value.value.lower() in ("utf-8", "utf8", "ascii"):
            yield Change([(src.start(value), src.end(value), b'"latin-1"')], [(value, ast.Constant(value="latin-1", kind=None))])
    if isinstance(node.func, ast.Attribute) and name in TRIMS and not isinstance(node._parent, ast.Expr):
        if not found or name in TRIMS[:3]:
            end = src.outer(node.func.value, src.start(node), src.find(b".", src.end(node.func.value)))[1]
            yield Change([(end, src.end(node), b"")], [(node, node.func.value)])
    if name == "round" and len(found) == 2 and isinstance(node.func, ast.Name):
        yield remove_argument(src, node, 1)
