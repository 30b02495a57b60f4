"""Helpers that operators use to make text edits: operands with the necessary parentheses, removed statements,
arguments."""
import ast

from registry import Change
from scope import FIXED, block_of
from trees import clone, has_docstring

CLOSED = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)  # with their own brackets
ATOMS = (ast.Name, ast.Call, ast.Attribute, ast.Subscript) + CLOSED
OPERATIONS = (ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare)


def atomic(src, node):
    """Returns whether the text of an expression never needs parentheses."""
    text = src.text(node)
    if isinstance(node, CLOSED):
        return True
    if b"\n" in text or b"\r" in text:
        return False
    if isinstance(node, ast.Constant):
        return not isinstance(node.value, (int, float, complex)) or isinstance(node.value, bool) or node.value is Ellipsis or text[-1:] != b"."
    if isinstance(node, ast.Tuple):
        return not node.elts or text.startswith(b"(") and src.outer(node.elts[0], src.start(node), src.end(node))[0] != src.start(node)
    return isinstance(node, ATOMS + (ast.JoinedStr,))


def operand(src, node, low, high=None):
    """Returns (begin, end, text) of an operand with its parentheses. Adds parentheses to text if it may need them."""
    begin, end = src.outer(node, low, high)
    text = src.data[begin:end]
    if begin == src.start(node) and not atomic(src, node):
        text = b"(" + text + b")"
    return begin, end, text


def in_parentheses(src, node, low, high=None):
    return src.outer(node, low, high)[0] != src.start(node)


def enclose(src, node):
    """Returns edits that put parentheses around an expression."""
    begin, end = src.start(node), src.end(node)
    return [(begin, begin, b"("), (end, end, b")")]


def remove_statement(src, node):
    """Returns (edits, swaps) that remove a statement. If its block would be empty or other code is on its lines, `pass`
    replaces the statement."""
    block = block_of(node)
    rest = [s for s in block if s is not node]
    begin, end = src.start(node), src.end(node)
    lines = src.whole_lines(begin, end)
    if lines and rest and not (has_docstring(block) and len(rest) == 1):
        return [(lines[0], lines[1], b"")], [(node, [])]
    return [(begin, end, b"pass")], [(node, ast.Pass())]


def gaps(src, values):
    """Yields the tokens [(offset, token)] of the operator between each two neighboring operands."""
    for left, right in zip(values, values[1:]):
        yield [(at, t) for at, t in src.tokens(src.end(left), src.start(right)) if t not in (b"(", b")")]


class Argument:
    """One argument of a call. Its span includes the name, stars and parentheses."""

    def __init__(self, node, begin, end):
        self.node, self.begin, self.end = node, begin, end


def arguments(src, call):
    """Returns the arguments of a call in source order. Returns an empty list if the only argument is a generator
    expression without its own parentheses."""
    nodes = sorted(call.args + [k.value for k in call.keywords], key=src.start)
    named = {id(k.value): k for k in call.keywords}
    at = src.find(b"(", src.end(call.func)) + 1
    if nodes and src.start(nodes[0]) < at:
        return []
    found, high = [], src.end(call) - 1
    for node in nodes:
        begin, low = None, at
        if id(node) in named:
            for offset, token in src.tokens(at, src.start(node)):
                if token in (b",", b"("):
                    continue
                begin = offset if begin is None else begin
                if token in (b"=", b"**"):
                    low = offset + len(token)
                    break
        first, end = src.outer(node, low, high)
        found.append(Argument(named.get(id(node), node), first if begin is None else begin, end))
        at = end
    return found


def remove_argument(src, call, index):
    """Returns the Change that removes an argument from a call."""
    found = arguments(src, call)
    one = found[index]
    if index > 0:
        edit = (found[index - 1].end, one.end, b"")
    elif len(found) > 1:
        edit = (one.begin, found[1].begin, b"")
    else:
        edit = (one.begin, src.end(call) - 1, b"")
    return Change([edit], [(call, clone(call, args=[a for a in call.args if a is not one.node],
                                        keywords=[k for k in call.keywords if k is not one.node]))])


def drop_last_element(src, value):
    """Returns the Change that removes the last element of a tuple in parentheses, or None."""
    if len(value.elts) < 2 or not atomic(src, value) or any(isinstance(e, ast.Starred) for e in value.elts):
        return None
    keep = value.elts[:-1]
    end = src.outer(keep[-1], src.start(value) + 1 if len(keep) == 1 else src.end(keep[-2]), src.end(value) - 1)[1]
    return Change([(end, src.end(value) - 1, b"," if len(keep) == 1 else b"")], [(value, clone(value, elts=keep))])


def replace_expression(src, node, new):
    """Returns the Change that replaces an expression by an expression inside it."""
    text = src.text(new)
    if not atomic(src, new) and not (isinstance(node._parent, (ast.Assign, ast.Return, ast.Call, ast.keyword, ast.Tuple, ast.List)) and b"\n" not in text):
        text = b"(" + text + b")"
    return Change([(src.start(node), src.end(node), text)], [(node, new)])


def outdent(src, node, body):
    """Returns edits that replace a compound statement by its block with less indentation, or None if that is not
    possible."""
    begin, end = src.start(node), src.end(node)
    first, last = src.start(body[0]), src.end(body[-1])
    if src.line_of(first) == src.line_of(begin):
        return [(begin, first, b""), (last, end, b"")]
    outside, inside = src.indent(begin), src.indent(first)
    if not inside.startswith(outside) or src.data[src.lines[src.line_of(begin) - 1]:begin] != outside:
        return None
    fixed = set()  # lines that begin inside a literal and keep their indentation
    for part in body:
        for n in ast.walk(part):
            if isinstance(n, FIXED + (ast.Constant,)):
                fixed.update(range(n.lineno + 1, n.end_lineno + 1))
    edits = [(begin - len(outside), src.lines[src.line_of(first) - 1], b"")]
    for line in range(src.line_of(first), src.line_of(last) + 1):
        at = src.lines[line - 1]
        if line not in fixed and src.data.startswith(inside, at):
            edits.append((at, at + len(inside), outside))
    return edits + ([(last, end, b"")] if last < end else [])
