"""Operators a1 to a5 change arithmetic operators and their operands."""
import ast

from phrases import OPERATIONS, enclose, gaps, in_parentheses, operand
from registry import Change, operator
from trees import clone, same

SYMBOL = {ast.Add: b"+", ast.Sub: b"-", ast.Mult: b"*", ast.Div: b"/", ast.FloorDiv: b"//", ast.Mod: b"%", ast.Pow: b"**",
          ast.LShift: b"<<", ast.RShift: b">>", ast.BitAnd: b"&", ast.BitOr: b"|", ast.BitXor: b"^"}
SIMILAR = {ast.Add: (ast.Sub,), ast.Sub: (ast.Add,), ast.Mult: (ast.FloorDiv,), ast.Div: (ast.Mult,), ast.FloorDiv: (ast.Mod, ast.Mult),
           ast.Mod: (ast.FloorDiv,), ast.Pow: (ast.Mult,), ast.LShift: (ast.RShift,), ast.RShift: (ast.LShift,),
           ast.BitAnd: (ast.BitOr,), ast.BitOr: (ast.BitAnd, ast.BitXor), ast.BitXor: (ast.BitOr, ast.BitAnd)}
LIKELY = ((ast.Add, ast.Sub), (ast.Sub, ast.Add), (ast.BitAnd, ast.BitOr), (ast.BitOr, ast.BitAnd))  # exchanges that people make; others are obvious (see Change)
BITS = (ast.BitAnd, ast.BitOr, ast.BitXor)
COLLECTIONS = ("str", "bytes", "list", "tuple", "dict", "set", "frozenset")


def is_neutral(node, *values):
    """Returns whether an operand is a constant with one of these values. Callers pass those with which a change has no
    effect."""
    return isinstance(node, ast.Constant) and type(node.value) in (int, float) and node.value in values


@operator("a1", "arithmetic", "operator replaced by a similar one", "a value is wrong", ast.BinOp)
def exchange(src, node, scope):
    left, right = scope.kind_of(node.left), scope.kind_of(node.right)
    found = operator_tokens(src, node)
    if left in COLLECTIONS or right in COLLECTIONS or not found:
        return
    if is_neutral(node.right, 0) or isinstance(node.op, (ast.Mult, ast.Div, ast.FloorDiv, ast.Pow)) and is_neutral(node.right, 1):
        return
    if isinstance(node.op, ast.Add) and not (is_number(scope, node.left) or is_number(scope, node.right)):
        return  # most likely text, and an exception would be obvious
    at, text = found[0]
    for kind in SIMILAR.get(type(node.op), ()):
        if kind is ast.FloorDiv and right == "float":
            continue
        edits = [(at, at + len(text), SYMBOL[kind])]
        if isinstance(node.op, (ast.Pow,) + BITS):  # the new operator has another precedence
            edits += parentheses(src, node)
        yield Change(edits, [(node, clone(node, op=kind()))], obvious=(type(node.op), kind) not in LIKELY)


def is_number(scope, node):
    """Returns whether an expression is probably a number. Any operation other than + and %, which people also use for
    text, counts as a number."""
    if isinstance(node, ast.BinOp):
        return not isinstance(node.op, (ast.Add, ast.Mod)) or is_number(scope, node.left) or is_number(scope, node.right)
    return scope.kind_of(node) in ("int", "float", "complex")


def operator_tokens(src, node):
    """Returns the tokens [(offset, token)] of the operator of a binary operation."""
    return next(gaps(src, [node.left, node.right]))


def parentheses(src, node):
    """Returns the edits that add parentheses around and inside a binary operation, so that the rest of the tree stays
    the same when its operator changes."""
    edits = []
    parent = node._parent
    if isinstance(parent, (ast.BinOp, ast.UnaryOp, ast.Await)):
        low = src.end(parent.left) if isinstance(parent, ast.BinOp) and node is parent.right else src.start(parent)
        if not in_parentheses(src, node, low, src.end(parent)):
            edits += enclose(src, node)
    for child, low, high in ((node.left, src.start(node), src.start(node.right)), (node.right, src.end(node.left), src.end(node))):
        if isinstance(child, ast.BinOp) and not in_parentheses(src, child, low, high):
            edits += enclose(src, child)
    return edits


@operator("a2", "arithmetic", "operands swapped", "a value has the wrong sign or is the inverse", ast.BinOp)
def order(src, node, scope):
    if isinstance(node.op, (ast.Mult, ast.MatMult) + BITS) or same(node.left, node.right):
        return
    left, right = scope.kind_of(node.left), scope.kind_of(node.right)
    if isinstance(node.op, ast.Add) and left not in COLLECTIONS and right not in COLLECTIONS:
        return  # the sum is the same
    if isinstance(node.op, ast.Mod) and left in COLLECTIONS:
        return  # formatting
    if isinstance(node.left, ast.BinOp) and isinstance(node.op, ast.Add) and isinstance(node.left.op, ast.Add):
        return  # z + (x + y) instead of x + y + z is obvious
    one = operand(src, node.left, src.start(node), src.start(node.right))
    two = operand(src, node.right, src.end(node.left), src.end(node))
    yield Change([(one[0], one[1], two[2]), (two[0], two[1], one[2])], [(node, clone(node, left=node.right, right=node.left))],
                 obvious=not isinstance(node.op, (ast.Sub, ast.Div, ast.FloorDiv)))


@operator("a3", "arithmetic", "operand of a chain removed", "a part of a sum or text is missing", ast.BinOp)
def link(src, node, scope):
    chain = node.left
    kinds = (ast.Add, ast.Sub) if isinstance(node.op, (ast.Add, ast.Sub)) else (type(node.op),)
    if not isinstance(chain, ast.BinOp) or not isinstance(chain.op, kinds) or not isinstance(node.op, (ast.Add, ast.Sub, ast.Mult, ast.BitOr)):
        return
    if is_neutral(chain.right, 0) or isinstance(node.op, ast.Mult) and is_neutral(chain.right, 1):
        return
    if in_parentheses(src, chain, src.start(node), src.start(node.right)):
        return
    if isinstance(chain.left, ast.Constant) and isinstance(node.right, ast.Constant):
        return  # an operation with two constants is obvious
    begin = src.outer(chain.left, src.start(chain), src.start(chain.right))[1]
    end = src.outer(chain.right, src.end(chain.left), src.end(chain))[1]
    yield Change([(begin, end, b"")], [(node, clone(node, left=chain.left))])


@operator("a4", "arithmetic", "augmented assignment changed", "a total is wrong, or starts from zero each time",
          ast.AugAssign)
def augmented(src, node, scope):
    at, text = next((at, t) for at, t in src.tokens(src.end(node.target), src.start(node.value)) if t.endswith(b"="))
    kinds = SIMILAR.get(type(node.op), ())[:1]
    is_collection = scope.kind_of(node.value) in COLLECTIONS or scope.kind_of(node.target) in COLLECTIONS
    if kinds and not is_collection and not is_neutral(node.value, 0):
        yield Change([(at, at + len(text), SYMBOL[kinds[0]] + b"=")], [(node, clone(node, op=kinds[0]()))], obvious=True)
    yield Change([(at, at + len(text), b"=")], [(node, ast.Assign(targets=[node.target], value=node.value, type_comment=None))])


@operator("a5", "arithmetic", "sign or negation removed", "a value is the opposite", ast.UnaryOp)
def unary(src, node, scope):
    if not isinstance(node.op, (ast.Not, ast.USub, ast.Invert)) or is_neutral(node.operand, 0):
        return
    begin, _ = src.outer(node.operand, src.start(node), src.end(node))
    if isinstance(node.op, ast.Not) and isinstance(node.operand, (ast.BoolOp, ast.Compare)) and isinstance(node._parent, OPERATIONS):
        return  # without `not`, the operation around it could take a part of the operand
    bound = isinstance(node.operand, ast.Constant) and isinstance(node._parent, (ast.Slice, ast.Subscript))
    yield Change([(src.start(node), begin, b"")], [(node, node.operand)], obvious=bound or isinstance(node.op, ast.Invert))
