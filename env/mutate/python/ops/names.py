"""Operator f3 replaces a variable by another variable of the same function."""
import ast

from registry import Change, operator
from scope import dotted_name
from trees import children, name, rebuild, same

PLAIN = {"self", "cls", "_", "__class__"}


def roles(scope):
    """Returns name -> how it is used: the attributes that are read, the operations, and the calls to which it is
    passed."""
    if not hasattr(scope, "_roles"):
        scope._roles = {}
        for node in scope.all():
            for field, child in children(node):
                if isinstance(child, ast.Name):
                    scope._roles.setdefault(child.id, set()).update(role(node, field, child))
    return scope._roles


def role(node, field, child):
    if isinstance(node, ast.Attribute):
        return {"." + node.attr}
    if isinstance(node, (ast.BinOp, ast.AugAssign)):
        return {"arithmetic"}
    if isinstance(node, ast.Compare):
        return {"order"} if isinstance(node.ops[0], (ast.Lt, ast.LtE, ast.Gt, ast.GtE)) else set()
    if isinstance(node, ast.Subscript):
        return {"container"} if field == "value" else {"index"}
    if isinstance(node, (ast.For, ast.comprehension)) and field == "iter":
        return {"iterable"}
    if isinstance(node, ast.Call) and field == "args":
        return {"given to " + dotted_name(node)} if dotted_name(node) else set()
    return set()


def compatible(scope, one, two):
    kinds = [scope.kinds().get(n, set()) - {""} for n in (one, two)]
    if kinds[0] and kinds[1]:
        return bool(kinds[0] & kinds[1])
    if kinds[0] or kinds[1]:
        return False
    return bool(roles(scope).get(one, set()) & roles(scope).get(two, set()))


@operator("f3", "name", "variable replaced by another of the same kind", "values are subtly wrong", ast.Name)
def replace_variable(src, node, scope):
    if not scope.function or not isinstance(node.ctx, ast.Load) or node.id in PLAIN:
        return
    parent, at = node._parent, src.start(node)
    if isinstance(parent, ast.Call) and parent.func is node or isinstance(parent, (ast.Delete, ast.AugAssign)) and parent.target is node:
        return
    if not scope.bound_before(node.id, at):
        return  # a module, a builtin, a global
    bound = scope.bound()
    near = sorted((n for n in bound if n != node.id and n not in PLAIN and scope.bound_before(n, at) and scope.always_bound(n, node)),
                  key=lambda n: (-max(b for b in bound[n] if b < at), n))
    chosen = [n for n in near if not is_trivial(node, n) and n not in scope.shared() and compatible(scope, node.id, n)]
    chosen.sort(key=lambda n: not is_similar(node.id, n))  # stable
    for new in chosen[:2]:
        yield Change([(at, src.end(node), new.encode("utf-8"))], [(node, name(new))])


def is_similar(one, two):
    """Returns whether a person may mistake a name for another one: both have a word in common, or they begin or end with
    the same three letters, or both have one letter."""
    if len(one) == len(two) == 1 or set(one.strip("_").split("_")) & set(two.strip("_").split("_")):
        return True
    return min(len(one), len(two)) > 3 and (one[:3] == two[:3] or one[-3:] == two[-3:])


def is_trivial(node, new):
    """Returns whether the replacement results in `a = a`, `a < a`, `a - a` or `a.f(a)`, which changes nothing or is
    obvious."""
    parent = node._parent
    call = parent._parent if isinstance(parent, ast.Attribute) else parent
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and node is not call.func:
        if any(isinstance(n, ast.Name) and n is not node and n.id == new for n in [call.func.value] + call.args):
            return True
    if makes_branches_equal(node, new):
        return True
    if isinstance(parent, ast.Subscript) and any(isinstance(n, ast.Name) and n.id == new for n in ast.walk(parent)):
        return True
    if isinstance(parent, ast.Assign):
        return any(isinstance(t, ast.Name) and t.id == new for t in parent.targets)
    others = [c for _, c in children(parent) if c is not node and isinstance(c, ast.Name)]
    return isinstance(parent, (ast.Compare, ast.BinOp, ast.BoolOp, ast.Call, ast.Subscript)) and any(c.id == new for c in others)


def makes_branches_equal(node, new):
    """Returns whether the replacement results in `a.x if y else a.x`."""
    branch = node
    while isinstance(branch._parent, ast.expr) and not isinstance(branch._parent, ast.IfExp):
        branch = branch._parent
    around = branch._parent
    if not isinstance(around, ast.IfExp) or branch is around.test:
        return False
    return same(rebuild(branch, {id(node): name(new)}), around.orelse if branch is around.body else around.body)
