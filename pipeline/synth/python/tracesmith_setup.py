"""Makes the attributes that the setUp of a test case assigns look like variables of the test."""
import ast
import re


def replace_attributes(frame, caller, code, tree):
    """Replaces the attributes that setUp assigns by variables in the code of a test file: self.s by s. Returns the
    statements of setUp, the new code and its syntax tree. If that is not possible, returns no statements and the
    arguments as they are."""
    unchanged = [], code, tree
    function = getattr(type(frame.f_locals.get("self")), "setUp", None)
    setup = setup_in(tree, function, frame.f_code.co_filename)
    if setup is None:
        return unchanged
    names = [stmt.targets[0].attr for stmt in assignments(setup)]
    taken = set(frame.f_locals) | set(frame.f_globals)
    if not names or taken & set(names) or caller is not None and not is_first(caller, tree, frame.f_code.co_filename):
        return unchanged
    code = re.sub(r"\bself\.(%s)\b" % "|".join(names), r"\1", code)
    try:
        tree = ast.parse(code)
    except SyntaxError:
        return unchanged
    return [s for s in setup_in(tree, function, frame.f_code.co_filename).body if isinstance(s, ast.Assign)], code, tree


def setup_in(tree, function, file):
    """Returns the node of a setUp method that a file defines, or None."""
    code = getattr(function, "__code__", None)
    if code is None or code.co_filename != file:
        return None
    return next((n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == "setUp" and n.lineno == code.co_firstlineno), None)


def assignments(setup):
    """Returns the statements of a setUp method if each of them assigns an attribute of self, apart from docstrings;
    otherwise an empty list."""
    out = [s for s in setup.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
    for s in out:
        target = s.targets[0] if isinstance(s, ast.Assign) and len(s.targets) == 1 else None
        if not isinstance(target, ast.Attribute) or not isinstance(target.value, ast.Name) or target.value.id != "self":
            return []
    return out


def is_first(caller, tree, file):
    """Returns whether the first statement of a test calls the helper that failed. caller is the frame of the test and
    its line. Otherwise, earlier statements may have changed what setUp assigned."""
    frame, line = caller
    if frame.f_code.co_filename != file:
        import tracesmith_scene
        tree = tracesmith_scene.parse(frame.f_code.co_filename)[1]
    for n in ast.walk(tree):
        if isinstance(n, ast.FunctionDef) and n.name == frame.f_code.co_name and n.lineno <= line <= n.end_lineno:
            body = [s for s in n.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
            return bool(body) and not hasattr(body[0], "body") and body[0].lineno <= line <= body[0].end_lineno
    return False
