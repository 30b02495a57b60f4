"""Measures the functions of a project: cyclomatic complexity, length in lines, and how many functions call them."""
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


def facts(root):
    """Returns the measurements of each function. A call counts
    if it uses the last part of the function's name, so callers of other functions of that name count as well."""
    found, callers = [], {}
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
                lines = (getattr(node, "end_lineno", None) or node.lineno) - node.lineno + 1
                found.append({"file": relative, "name": qualified, "cyclomatic": cyclomatic(node), "lines": lines})
                for n in ast.walk(node):
                    called = isinstance(n, ast.Call) and (getattr(n.func, "id", None) or getattr(n.func, "attr", None))
                    if called:
                        callers.setdefault(called, set()).add((relative, qualified))
    for f in found:
        f["callers"] = len(callers.get(f["name"].rpartition(".")[2], set()) - {(f["file"], f["name"])})
    return found


if __name__ == "__main__":
    print(json.dumps(facts(sys.argv[1])))
