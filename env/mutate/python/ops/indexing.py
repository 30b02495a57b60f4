"""Operators i1 to i3 change indexes, slices and ranges. Operator k1 changes integers anywhere else."""
import ast

from registry import Change, operator
from scope import dotted_name
from trees import clone, index_expression, number


def literal(node):
    """Returns the value of an integer literal with its sign, or None for anything else."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = literal(node.operand)
        return None if value is None or isinstance(node.operand, ast.UnaryOp) else -value
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else None


def off_by_one(src, node, step):
    """Returns a Change that makes an index expression one larger or smaller, or None."""
    value = literal(node)
    if value is not None:
        if not src.text(node).lstrip(b"-").strip().isdigit():
            return None
        return Change([(src.start(node), src.end(node), b"%d" % (value + step))], [(node, number(value + step))])
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)) and src.text(node.right).isdigit():
        value = literal(node.right) + (step if isinstance(node.op, ast.Add) else -step)
        if value == 0:
            begin = src.outer(node.left, src.start(node), src.start(node.right))[1]
            return Change([(begin, src.end(node), b"")], [(node, node.left)])
        if value > 0:
            return Change([(src.start(node.right), src.end(node.right), b"%d" % value)], [(node.right, number(value))])
    if isinstance(node, (ast.BinOp, ast.Call, ast.Name, ast.Attribute, ast.Subscript)) and not (
            isinstance(node, ast.BinOp) and not isinstance(node.op, (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod))):
        at = src.end(node)
        sign, op = (b" + 1", ast.Add()) if step > 0 else (b" - 1", ast.Sub())
        return Change([(at, at, sign)], [(node, ast.BinOp(left=node, op=op, right=number(1)))])
    return None


@operator("i1", "index", "index off by one, or first and last element exchanged", "another element is used, or the last one twice", ast.Subscript)
def index(src, node, scope):
    at = index_expression(node.slice)
    if isinstance(at, (ast.Slice, ast.Tuple)) or not scope.is_int(at):
        return
    value = literal(at)
    change = off_by_one(src, at, 1 if value == 0 else -1)
    if change:
        change.obvious = value in (0, -1)
        yield change
    if value in (0, -1):
        yield Change([(src.start(at), src.end(at), b"%d" % (-1 - value))], [(at, number(-1 - value))])


@operator("i2", "index", "bound of a slice off by one", "the first or last element is missing", ast.Subscript)
def bound(src, node, scope):
    part = node.slice
    if not isinstance(part, ast.Slice) or part.lower is None and part.upper is None and part.step is None:
        return  # [:] is a copy, which m1 changes
    opening = src.find(b"[", src.end(node.value)) + 1
    if part.lower is None:
        yield Change([(opening, opening, b"1")], [(part, clone(part, lower=number(1)))], obvious=True)
    else:
        change = off_by_one(src, part.lower, 1)
        if change and literal(part.lower) != -1:
            yield change
    low = opening if part.lower is None else src.end(part.lower)
    colon = src.find(b":", low)
    if part.upper is not None:
        change = off_by_one(src, part.upper, -1)
        if change and literal(part.upper) != 0:
            change.obvious = literal(part.upper) is not None and (literal(part.upper) == -1 or isinstance(node._parent, ast.Compare))
            yield change
    elif part.step is None:
        yield Change([(colon + 1, colon + 1, b"-1")], [(part, clone(part, upper=number(-1)))], obvious=True)
    if part.step is not None and literal(part.step) != 1:
        begin = src.find(b":", colon + 1 if part.upper is None else src.end(part.upper))
        end = src.outer(part.step, begin + 1, src.end(node))[1]
        yield Change([(begin, end, b"")], [(part, clone(part, step=None))])


@operator("i3", "index", "bound of a range off by one", "the first or last iteration is missing", ast.Call)
def span(src, node, scope):
    if dotted_name(node) != "range" or node.keywords or any(isinstance(a, ast.Starred) for a in node.args) or not node.args:
        return
    low = src.end(node.func)
    stop = node.args[0 if len(node.args) == 1 else 1]
    if literal(stop) != 0:
        change = off_by_one(src, stop, -1)
        if change:
            yield change
    if len(node.args) == 1:
        at = src.outer(stop, low, src.end(node) - 1)[0]
        yield Change([(at, at, b"1, ")], [(node, clone(node, args=[number(1), stop]))])
    else:
        change = off_by_one(src, node.args[0], 1)
        if change:
            yield change


@operator("k1", "constant", "integer off by one", "a value, limit or count is wrong", ast.Constant)
def integer(src, node, scope):
    text = src.text(node)
    if type(node.value) is not int or not text.isdigit() or len(text) > 12:
        return
    parent, field = node._parent, node._field
    if isinstance(parent, ast.UnaryOp) and isinstance(parent._parent, (ast.Subscript, ast.Slice)) or isinstance(parent, (ast.Slice, ast.Subscript)):
        return  # i1, i2
    if type(parent).__name__ == "Index" or isinstance(parent, ast.Call) and dotted_name(parent) == "range":
        return  # i1, i3
    if field == "value" and isinstance(parent, ast.keyword) and parent.arg == "stacklevel":
        return
    obvious = not is_likely(parent)
    if isinstance(parent, ast.BinOp) and node is parent.right and node.value == 1 and isinstance(parent.op, (ast.Add, ast.Sub)):
        begin = src.outer(parent.left, src.start(parent), src.start(node))[1]
        yield Change([(begin, src.end(parent), b"")], [(parent, parent.left)])
    obvious = obvious or isinstance(parent, ast.Assign) and node.value > 2
    for value in (node.value + 1,) + ((node.value - 1,) if node.value > 1 else ()):
        yield Change([(src.start(node), src.end(node), b"%d" % value)], [(node, number(value))], obvious)


def is_likely(parent):
    """Returns whether a person may write another integer there: as a boundary, a default or the first value of a variable."""
    if isinstance(parent, ast.Compare):
        return all(isinstance(op, (ast.Lt, ast.LtE, ast.Gt, ast.GtE)) for op in parent.ops)
    return isinstance(parent, (ast.Assign, ast.arguments, ast.keyword))
