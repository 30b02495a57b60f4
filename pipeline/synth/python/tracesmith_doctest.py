"""Describes the failure of a doctest by the example that failed and the examples before it."""
import ast
import builtins
import doctest
import re
import sys

MAX_LINES, MAX_CHARS = 18, 900


def unwrap(kind, value, tb):
    """Returns what a doctest failed with, as an exception, and the other fields of Failure in failure.go. Returns any
    other exception as it is, without fields."""
    if kind.__name__ == "MultipleDoctestFailures":  # of pytest
        value = value.failures[0]
    if isinstance(value, doctest.UnexpectedException):
        return value.exc_info + (fields(value, "run"),)
    if not isinstance(value, doctest.DocTestFailure):
        return kind, value, tb, {}
    got, want, expected = value.got.strip("\n"), value.example.want.strip("\n"), value.example.exc_msg
    if expected:
        out = fields(value, "raises")
        out["scene"]["raises"] = re.split(r"[:\s]", expected)[0]
        error = got.rsplit("\n", 1)[-1] if got.startswith("Traceback") else ""
        if error:
            out.update(type=error.partition(":")[0], message=error.partition(": ")[2], text=error)
        return AssertionError, AssertionError("did not raise " + expected.strip()), None, out
    if "\n" in got + want or value.example.source.startswith("print(") or not is_expression(value.example.source):
        got, want = next(((a, b) for a, b in zip(got.split("\n"), want.split("\n")) if a != b), (got, want))
        return AssertionError, AssertionError("expected %r, got %r" % (want, got)), None, fields(value, "other")
    out = fields(value, "equal")
    out.update(left=got, right=want)
    return AssertionError, AssertionError("%s != %s" % (got, want)), None, out


def fields(failure, relation):
    """Returns the statement, the lines and the scene of a failure."""
    source = code_of(failure.example)
    scene = {"relation": relation, "call": source, "short": short(source)}
    scene.update(context(failure.test, failure.example, source))
    return {"statement": source, "lines": [{"function": failure.test.name.rpartition(".")[2], "code": source}], "scene": scene}


def code_of(example):
    """Returns the code of an example without directives."""
    return re.sub(r"\s*# doctest:.*", "", example.source).strip()


def is_expression(source):
    body = ast.parse(source).body
    return len(body) == 1 and isinstance(body[0], ast.Expr)


def short(source):
    """Returns a call without its arguments, or "" for any other code."""
    call = ast.parse(source).body[-1]
    call = call.value if isinstance(call, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, (ast.Name, ast.Attribute)):
        return source[:call.func.end_col_offset] + "(...)" if source.isascii() and call.lineno == call.func.end_lineno else ""
    return ""


def context(test, failed, source):
    """Returns the imports and statements of the earlier examples, if they and source run without the doctest."""
    imports, before = [], []
    for example in test.examples[:test.examples.index(failed)]:
        code = code_of(example)
        for node in ast.parse(code).body if not example.options.get(doctest.SKIP) else []:
            segment = "\n".join(code.split("\n")[node.lineno - 1:node.end_lineno])
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                imports.append(segment)
            elif not isinstance(node, ast.Expr) or isinstance(node.value, ast.Call) and not segment.startswith("print("):
                before.append(segment)
    tree = ast.parse("\n".join(imports + before + [source]))
    names = [n for n in ast.walk(tree) if isinstance(n, ast.Name)]
    bound = {n.id for n in names if not isinstance(n.ctx, ast.Load)} | {a.arg for a in ast.walk(tree) if isinstance(a, ast.arg)}
    bound |= {n.name for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            bound |= {(a.asname or a.name).partition(".")[0] for a in node.names}
    missing = sorted({n.id for n in names} - bound - set(dir(builtins)))
    module = test.globs.get("__name__", "")
    if missing:
        if not all(hasattr(sys.modules.get(module), name) for name in missing):
            return {}
        imports.append("from %s import %s" % (module, ", ".join(missing)))
    lines = "\n".join(imports + before + [source])
    if lines.count("\n") >= MAX_LINES or len(lines) > MAX_CHARS:
        return {}
    return {"imports": imports, "before": before, "whole": True}
