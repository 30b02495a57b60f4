"""Operators f1, f2 and f4 change the arguments of calls and the callee."""
import ast

from phrases import arguments, remove_argument
from registry import Change, operator
from scope import FUNCTION, dotted_name
from trees import clone, name, same

SYMMETRIC = {"min", "max", "gcd", "lcm", "hypot", "isclose", "isinstance", "issubclass", "getattr", "setattr", "hasattr", "delattr", "super",
             "print", "open", "range", "union", "intersection"}


@operator("f1", "call", "two arguments swapped", "a value is plausible but belongs elsewhere", ast.Call)
def swap(src, node, scope):
    if dotted_name(node).split(".")[-1] in SYMMETRIC:
        return
    found = arguments(src, node)
    for i in range(len(found) - 1):
        one, two = found[i], found[i + 1]
        if any(isinstance(a.node, (ast.keyword, ast.Starred)) or getattr(a.node, "value", 0) == "" for a in (one, two)) or same(one.node, two.node):
            continue  # "" in the place of another text is obvious
        kinds = scope.kind_of(one.node), scope.kind_of(two.node)
        if kinds[0] != kinds[1] or not kinds[0] and type(one.node) is not type(two.node):
            continue
        args = list(node.args)
        args[i], args[i + 1] = args[i + 1], args[i]
        yield Change([(one.begin, one.end, src.data[two.begin:two.end]), (two.begin, two.end, src.data[one.begin:one.end])],
                     [(node, clone(node, args=args))])


@operator("f2", "call", "keyword argument removed", "a default is used instead of a value", ast.Call)
def keyword(src, node, scope):
    for i, a in enumerate(arguments(src, node)):
        if isinstance(a.node, ast.keyword) and a.node.arg not in ("stacklevel", "daemon", "file", "flush"):
            change = remove_argument(src, node, i)
            change.obvious = len(node.args) + len(node.keywords) == 1
            yield change


PAIRS = [("min", "max"), ("any", "all")]
METHOD_PAIRS = [("append", "extend"), ("startswith", "endswith"), ("find", "rfind"), ("index", "rindex"), ("split", "rsplit"),
                ("partition", "rpartition"), ("lstrip", "rstrip"), ("ljust", "rjust"), ("lower", "upper"), ("keys", "values"),
                ("union", "intersection"), ("issubset", "issuperset"), ("add", "discard"), ("appendleft", "append"), ("popleft", "pop"),
                ("floor", "ceil"), ("match", "search"), ("isdigit", "isalpha"), ("isupper", "islower"), ("setdefault", "get"),
                ("bisect_left", "bisect_right"), ("sin", "cos"), ("heappush", "heappop"), ("intersection_update", "update")]


# Methods for which hardly anybody writes the other one of the pair by mistake.
UNLIKELY = {"lower", "upper", "keys", "values", "union", "intersection", "add", "discard", "isdigit", "isalpha", "isupper", "islower",
            "sin", "cos", "heappush", "heappop", "intersection_update", "update", "startswith", "endswith"}


def partner(pairs, ident):
    for one, two in pairs:
        if ident == one:
            return two
    return next((one for one, two in pairs if ident == two), None)


def arity(function):
    a = function.args
    plain = not (a.vararg or a.kwarg or a.kwonlyargs or a.defaults or function.decorator_list)
    return len(a.args) if plain else -1


@operator("f4", "call", "callee replaced by a similar one", "the opposite end, order or set is used", ast.Call)
def callee(src, node, scope):
    func = node.func
    if isinstance(func, ast.Name):
        new = partner(PAIRS, func.id) or ("list" if func.id == "sorted" and len(node.args) == 1 and not node.keywords else None)
        if new and not scope.bound().get(func.id):
            yield Change([(src.start(func), src.end(func), new.encode())], [(func, name(new))])
    elif isinstance(func, ast.Attribute):
        new, unlikely = partner(METHOD_PAIRS, func.attr), func.attr in UNLIKELY
        if isinstance(func.value, ast.Name) and func.value.id == "self" and scope.owner is not None:
            methods = {m.name: arity(m) for m in scope.owner.body if isinstance(m, FUNCTION) and not m.name.startswith("__")}
            alike = [m for m in methods if methods[m] == methods.get(func.attr, -1) != -1 and m != scope.node.name]
            if func.attr in alike and len(alike) > 1:
                new, unlikely = alike[(alike.index(func.attr) + 1) % len(alike)], True
        if new and not (new == "extend" and node.args and scope.kind_of(node.args[0]) == "int"):
            yield Change([(src.end(func) - len(func.attr.encode()), src.end(func), new.encode())], [(func, clone(func, attr=new))], unlikely)
