"""Operators o1 to o3 change the order of statements, bases and overrides of classes, and exits of loops."""
import ast

from phrases import outdent, remove_statement
from registry import Change, operator
from scope import FUNCTION, LOOP, block_of, constant_condition, dotted_name, enclosing
from trees import clone, has_docstring, same

SIMPLE = (ast.Assign, ast.AugAssign, ast.Expr)


def reads_and_writes(stmt):
    """Returns the names and dotted names that a statement reads and writes. A method call counts as a write of its
    object."""
    read, written = set(), set()
    for n in ast.walk(stmt):
        if isinstance(n, (ast.Name, ast.Attribute)):
            text = dotted_name(n)
            if isinstance(n.ctx, ast.Load):
                read.add(text)
            else:
                written.add(text)
        elif isinstance(n, ast.Subscript) and not isinstance(n.ctx, ast.Load):
            written.add(dotted_name(n.value))
        elif isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute):
            written.add(dotted_name(n.func.value))
    if isinstance(stmt, ast.AugAssign):
        read.add(dotted_name(stmt.target))
    return read - {"", "self"}, written - {"", "self"}


@operator("o1", "order", "two dependent statements swapped", "a value is from the previous iteration", *SIMPLE)
def swap_statements(src, node, scope):
    block = block_of(node)
    at = next((i for i, s in enumerate(block) if s is node), len(block))
    if at + 1 >= len(block) or not isinstance(block[at + 1], SIMPLE) or not scope.function or at == 0 and has_docstring(block):
        return
    other = block[at + 1]
    if same(node, other) or not hasattr(other, "_parent") or isinstance(other.value, ast.Constant) and isinstance(other, ast.Expr):
        return
    if isinstance(node, ast.AugAssign) and isinstance(other, ast.AugAssign) and same(node.target, other.target):
        return
    if isinstance(node, ast.Assign) and any(isinstance(t, ast.Subscript) and any(same_place(t, n) for n in ast.walk(other)) for t in node.targets):
        return  # most likely a KeyError, which is obvious
    (read, written), (read2, written2) = reads_and_writes(node), reads_and_writes(other)
    if not (written & read2 or read & written2):
        return
    if any("." not in n and not scope.always_bound(n, node) for n in written & read2):
        return  # the name would be undefined, which is obvious
    one, two = (src.start(node), src.end(node)), (src.start(other), src.end(other))
    yield Change([one + (src.data[two[0]:two[1]],), two + (src.data[one[0]:one[1]],)], [(node, clone(other)), (other, clone(node))])


def same_place(target, node):
    return isinstance(node, ast.Subscript) and same(clone(target, ctx=ast.Load()), clone(node, ctx=ast.Load()))


@operator("o2", "class", "base class, override or call of super removed", "an AttributeError, or the behavior of the base class",
          ast.ClassDef, ast.Expr, *FUNCTION)
def shape(src, node, scope):
    if isinstance(node, ast.Expr):
        call = node.value
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Call) and dotted_name(call.func.value) == "super":
            yield Change(*remove_statement(src, node), obvious=True)
    elif isinstance(node, ast.ClassDef):
        yield from bases(src, node, classes(src))
    elif isinstance(node._parent, ast.ClassDef) and node.name not in ("__init__", "__new__") and not node.decorator_list:
        for base in ancestors(node._parent, classes(src)):
            if any(isinstance(m, FUNCTION) and m.name == node.name for m in base.body):
                yield Change(*remove_statement(src, node), obvious=True)
                return


def classes(src):
    if not hasattr(src, "_classes"):
        src._classes = {n.name: n for n in src.tree.body if isinstance(n, ast.ClassDef)}
    return src._classes


def ancestors(node, known):
    seen, todo = [], [node]
    while todo:
        for base in todo.pop().bases:
            found = known.get(base.id) if isinstance(base, ast.Name) else None
            if found is not None and found not in seen and found is not node:
                seen.append(found)
                todo.append(found)
    return seen


def bases(src, node, known):
    """Yields a Change that removes the last of several bases, or the only one if the file defines it."""
    if not node.bases or node.keywords or getattr(node, "type_params", None) or any(isinstance(b, ast.Starred) for b in node.bases):
        return
    opening = src.find(b"(", src.lines[node.lineno - 1] + node.col_offset)
    end = src.find(b":", src.outer(node.bases[-1], opening + 1 if len(node.bases) == 1 else src.end(node.bases[-2]))[1])
    last = node.bases[-1]
    if len(node.bases) == 1:
        if isinstance(last, ast.Name) and last.id in known:
            yield Change([(opening, end, b"")], [(node, clone(node, bases=[]))], obvious=True)
    elif isinstance(last, ast.Name) and last.id not in ("object", "ABC", "Protocol", "Enum", "Generic", "Exception"):
        before = src.outer(node.bases[-2], opening + 1 if len(node.bases) == 2 else src.end(node.bases[-3]), end)[1]
        yield Change([(before, src.outer(last, before)[1], b"")], [(node, clone(node, bases=node.bases[:-1]))], obvious=True)


@operator("o3", "loop", "break, continue or else of a loop changed", "a loop ends too early or too late",
          ast.Break, ast.Continue, *LOOP)
def leave(src, node, scope):
    if isinstance(node, ast.Break):
        loop = enclosing(node, LOOP)
        if loop is not None and not (isinstance(loop, ast.While) and constant_condition(loop.test)):
            yield Change([(src.start(node), src.end(node), b"continue")], [(node, ast.Continue())])
    elif isinstance(node, ast.Continue):
        yield Change([(src.start(node), src.end(node), b"break")], [(node, ast.Break())])
    elif node.orelse and any(isinstance(n, ast.Break) for n in ast.walk(node)):
        yield from without_else(src, node)


def without_else(src, node):
    """Yields a Change that makes the else of a loop run always."""
    end = src.end(node.body[-1])
    begin = src.find(b"else", end)
    first = src.start(node.orelse[0])
    if src.line_of(first) == src.line_of(begin):
        edits = [(begin, first, b"")]
    else:
        edits = outdent(src, Span(src, begin, src.end(node)), node.orelse)
    if edits and src.indent(begin) == src.indent(src.start(node)):
        yield Change(edits, [(node, [clone(node, orelse=[])] + node.orelse)])


class Span:
    """A span of the text with the position attributes of a node, for functions that expect a node."""

    def __init__(self, src, begin, end):
        line, last = src.line_of(begin), src.line_of(end)
        self.lineno, self.col_offset = line, begin - src.lines[line - 1]
        self.end_lineno, self.end_col_offset = last, end - src.lines[last - 1]
