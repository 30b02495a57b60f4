"""Measures a function of a project: its cyclomatic complexity, its length in lines, and how many functions call it."""
import ast
import json
import os
import sys

BRANCHES = (ast.If, ast.For, ast.While, ast.IfExp, ast.ExceptHandler, ast.comprehension, ast.Assert, ast.AsyncFor)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def functions(tree):
    """Yields (qualified name, node) of each function."""
    todo = [("", tree)]
    while todo:
        prefix, node = todo.pop()
        for child in ast.iter_child_nodes(node):
            name = prefix
            if isinstance(child, FUNCTIONS + (ast.ClassDef,)):
                name = prefix + child.name
                if isinstance(child, FUNCTIONS):
                    yield name, child
                name += "."
            todo.append((name, child))


def cyclomatic(node):
    total = 1
    for n in ast.walk(node):
        total += isinstance(n, BRANCHES)
        if isinstance(n, ast.BoolOp):
            total += len(n.values) - 1
    return total


def facts(root, file, function):
    """Returns {"cyclomatic": ..., "lines": ..., "callers": ...}. A call counts if it uses the last part of the
    function's name, so callers of other functions of that name count as well."""
    out = {}
    callers = set()
    last = function.rpartition(".")[2]
    for below, dirs, names in os.walk(root):
        dirs[:] = [d for d in dirs if not d.startswith(".") and d != "__pycache__"]
        for name in names:
            path = os.path.join(below, name)
            if not name.endswith(".py") or os.path.islink(path):
                continue
            try:
                with open(path, "rb") as f:
                    tree = ast.parse(f.read())
            except (OSError, SyntaxError, ValueError, RecursionError):
                continue
            relative = os.path.relpath(path, root)
            for qualified, node in functions(tree):
                if relative == file and qualified == function:
                    out["cyclomatic"] = cyclomatic(node)
                    out["lines"] = (getattr(node, "end_lineno", None) or node.lineno) - node.lineno + 1
                for n in ast.walk(node):
                    if isinstance(n, ast.Call) and last in (getattr(n.func, "id", None), getattr(n.func, "attr", None)):
                        callers.add((relative, qualified))
    out["callers"] = len(callers - {(file, function)})
    return out


if __name__ == "__main__":
    print(json.dumps(facts(*sys.argv[1:4])))
