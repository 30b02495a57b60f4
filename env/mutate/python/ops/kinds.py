"""Operators e1 and t1 use exceptions of the wrong class and values of the wrong type."""
import ast

from phrases import arguments, drop_last_element, remove_argument, replace_expression
from registry import Change, operator
from scope import dotted_name
from trees import clone, name

NARROWER = {"Exception": "ValueError", "BaseException": "Exception", "LookupError": "KeyError", "ArithmeticError": "ZeroDivisionError",
            "OSError": "FileNotFoundError", "IOError": "FileNotFoundError", "FileNotFoundError": "PermissionError", "KeyError": "IndexError",
            "IndexError": "KeyError", "ValueError": "TypeError", "TypeError": "ValueError", "AttributeError": "KeyError",
            "StopIteration": "IndexError", "ZeroDivisionError": "ValueError", "RuntimeError": "ValueError", "OverflowError": "ValueError",
            "UnicodeDecodeError": "UnicodeEncodeError", "UnicodeError": "UnicodeDecodeError", "AssertionError": "ValueError"}


# The handlers of which a person may limit to a part of what they should handle.
PARTS = ("Exception", "BaseException", "LookupError", "ArithmeticError", "OSError", "IOError", "UnicodeError")


@operator("e1", "exception", "wrong or narrower exception", "an error is not handled", ast.ExceptHandler, ast.Raise)
def exception(src, node, scope):
    if isinstance(node, ast.Raise):
        kind = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        kinds = [kind]
    else:
        kinds = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
    taken = [k.id for k in kinds if isinstance(k, ast.Name)]
    for kind in kinds:
        new = NARROWER.get(kind.id) if isinstance(kind, ast.Name) else None
        if new and new not in taken:
            yield Change([(src.start(kind), src.end(kind), new.encode())], [(kind, name(new))],
                         obvious=isinstance(node, ast.Raise) or kind.id not in PARTS)
    if isinstance(node, ast.ExceptHandler) and isinstance(node.type, ast.Tuple):
        if len(node.type.elts) == 2:  # except (A,) looks odd
            yield replace_expression(src, node.type, node.type.elts[0])
        elif drop_last_element(src, node.type):
            yield drop_last_element(src, node.type)


CONVERSIONS = {"int": "int", "float": "float", "str": "str", "bytes": "bytes"}


@operator("t1", "type", "value of a similar type", "a number, text or time is almost right", ast.BinOp, ast.Call)
def confusion(src, node, scope):
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, (ast.Div, ast.FloorDiv)) and scope.kind_of(node.left) != "str":
            at = src.find(b"/" if isinstance(node.op, ast.Div) else b"//", src.end(node.left))
            new, text = (ast.FloorDiv(), b"//") if isinstance(node.op, ast.Div) else (ast.Div(), b"/")
            size = 1 if isinstance(node.op, ast.Div) else 2
            yield Change([(at, at + size, text)], [(node, clone(node, op=new))])
        return
    func = node.func
    if isinstance(func, ast.Name) and func.id in CONVERSIONS and len(node.args) == 1 and not node.keywords and arguments(src, node):
        value = node.args[0]
        if not isinstance(value, ast.Starred) and scope.kind_of(value) != func.id and not isinstance(node._parent, (ast.FormattedValue, ast.Expr)):
            yield replace_expression(src, node, value)
    elif isinstance(func, ast.Attribute) and func.attr in ("encode", "decode") and len(node.args) < 2 and not isinstance(node._parent, ast.Expr):
        end = src.outer(func.value, src.start(node), src.find(b".", src.end(func.value)))[1]
        yield Change([(end, src.end(node), b"")], [(node, func.value)], obvious=True)  # fails at once
    elif dotted_name(node).split(".")[-1] in ("now", "fromtimestamp") and "datetime" in dotted_name(node):
        for i, a in enumerate(arguments(src, node)):
            if isinstance(a.node, ast.keyword) and a.node.arg == "tz" or i == 1 or dotted_name(node).endswith(".now"):
                yield remove_argument(src, node, i)
