"""Operators d3 and y1 remove the statement around a block, or an await, and keep the block or the operand."""
import ast
import re

from phrases import outdent
from registry import Change, operator
from scope import JUMP, LOOP, WITH, constant_condition
from trees import clone

LOCK = re.compile(rb"lock|mutex|semaphore|sem\b", re.I)
TRY = tuple(getattr(ast, n) for n in ("Try", "TryStar") if hasattr(ast, n))


def has_own_jumps(loop):
    """Returns whether the body has a break or continue of this loop."""
    stack = list(loop.body)
    while stack:
        n = stack.pop()
        if isinstance(n, (ast.Break, ast.Continue)):
            return True
        if not isinstance(n, LOOP + (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            stack.extend(ast.iter_child_nodes(n))
    return False


@operator("d3", "removal", "loop, with or try around a block removed", "only the first iteration runs, or nothing is cleaned up",
          ast.For, ast.AsyncFor, ast.While,
          *(WITH + TRY))
def wrapper(src, node, scope):
    if isinstance(node, ast.While):
        if constant_condition(node.test) is None and not node.orelse and not has_own_jumps(node):
            at = src.start(node)
            yield Change([(at, at + len(b"while"), b"if")], [(node, ast.If(test=node.test, body=node.body, orelse=[]))])
    elif isinstance(node, LOOP):
        yield from once(src, node)
    elif isinstance(node, WITH):
        text = src.data[src.start(node):src.start(node.body[0])]
        if all(i.optional_vars is None for i in node.items) and not LOCK.search(text):
            yield from unwrap(src, node)
    elif not node.orelse:
        yield from unwrap(src, node)


def once(src, node):
    """Yields a Change that adds a break at the end of the loop's body."""
    last = node.body[-1]
    if isinstance(last, JUMP) or isinstance(last, (ast.If, ast.Try, ast.FunctionDef, ast.ClassDef) + LOOP + WITH) and src.line_of(src.start(node.body[0])) == src.line_of(src.start(node)):
        return
    end = src.end(last)
    if src.line_of(src.start(last)) == src.line_of(src.start(node)):
        text = b"; break"
    else:
        tail = re.compile(rb"[ \t\f]*;?[ \t\f]*(?:#[^\r\n]*)?").match(src.data, end).end()
        text, end = src.newline() + src.indent(src.start(node.body[0])) + b"break", tail
    yield Change([(end, end, text)], [(node, clone(node, body=node.body + [ast.Break()]))])


def unwrap(src, node):
    edits = outdent(src, node, node.body)
    if edits:
        yield Change(edits, [(node, list(node.body))])


@operator("y1", "concurrency", "await or lock removed", "a coroutine never runs, or there is a race", ast.Await, *WITH)
def unguarded(src, node, scope):
    if isinstance(node, ast.Await):
        begin, _ = src.outer(node.value, src.start(node), src.end(node))
        yield Change([(src.start(node), begin, b"")], [(node, node.value)])
    elif all(i.optional_vars is None for i in node.items) and LOCK.search(src.data[src.start(node):src.start(node.body[0])]):
        yield from unwrap(src, node)
