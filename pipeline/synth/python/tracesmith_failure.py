"""Describes one failure of a test: the exception, its frames and, for a failed comparison,
the values of both sides."""
import ast
import traceback

import tracesmith_doctest
import tracesmith_scene

MAX_TEXT, MAX_VALUE, MAX_FRAMES = 4000, 300, 200
LONG = 150  # characters of a value that do not fit into a sentence


def describe(kind, value, tb, place, compared=None):
    """Returns the description of an exception (see Failure in failure.go). place maps a file name to
    the path in the project, or to None for other files. compared are both sides of the last comparison
    that failed in an assert statement."""
    unwrapped, example = guarded(lambda: tracesmith_doctest.unwrap(kind, value, tb)), {}
    if isinstance(unwrapped, tuple):
        kind, value, tb, example = unwrapped
    frames, tests = [], []
    compared = compared if issubclass(kind, AssertionError) else None
    while tb is not None and len(frames) < MAX_FRAMES:
        frame, line = tb.tb_frame, tb.tb_lineno
        code = frame.f_code
        path = place(code.co_filename)
        if path:
            frames.append({"file": path, "line": line, "function": getattr(code, "co_qualname", code.co_name)})
            if is_test(path):
                tests.append((code.co_filename, line, frame))
        elif code.co_name.startswith("assert") and tests:
            compared = unittest_operands(frame) or compared
        tb = tb.tb_next
    test = tests[-1] if tests else None
    message = guarded(lambda: str(value))
    out = {"type": kind.__name__, "message": message[:MAX_TEXT], "frames": frames,
           "statement": statement(*test[:2])[:MAX_TEXT] if test else ""}
    out["text"] = guarded(lambda: "".join(traceback.format_exception_only(kind, value)))[-MAX_TEXT:]
    shown = guarded(lambda: shown_lines(tests))
    if isinstance(shown, dict):
        out.update(shown)
    scene = guarded(lambda: tracesmith_scene.scene(test[2], test[1], tests[0][2:0:-1] if len(tests) > 1 else None)) if test else None
    if isinstance(scene, dict):
        out["scene"] = scene
    if compared:
        if isinstance(scene, dict) and scene["relation"] == "equal":
            shown = guarded(lambda: narrow(scene, *compared))
            compared = shown if isinstance(shown, tuple) else compared
            out["part"] = scene.pop("part", "")
        out["left"], out["right"] = map(short_repr, compared)
    out.update(example)
    return out


MAX_SHOWN, MAX_VALUES = 300, 4


def shown_lines(tests):
    """Returns the failing statements of a test and of its innermost helper, and the values of their variables that the
    statements do not show."""
    if not tests:
        return {}
    chosen = [tests[0]] + tests[-1:] * (len(tests) > 1)
    lines = [{"function": frame.f_code.co_name, "code": statement(file, line)} for file, line, frame in chosen]
    if not all(0 < len(line["code"]) <= MAX_SHOWN for line in lines):
        return {}
    values, code = [], "\n".join(line["code"] for line in lines)
    frame = chosen[-1][2]
    for node in ast.walk(ast.parse(lines[-1]["code"])):
        found = guarded(lambda: value_of(node, frame.f_locals))
        if isinstance(found, tuple):
            text = "%s = %s" % (ast.get_source_segment(lines[-1]["code"], node), guarded(lambda: tracesmith_scene.literal(found[0])))
            if not text.endswith("<NeedsTest>") and text not in values and not (len(lines) > 1 and shows(code, found[0])):
                values.append(text)
    return {"lines": lines, "values": values[:MAX_VALUES]}


def value_of(node, variables):
    """Returns the value of a variable, an item of it, or an attribute of self, as a tuple, or None."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id != "self":
        return (variables[node.id],)
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and isinstance(node.slice, ast.Constant):
        return (variables[node.value.id][node.slice.value],)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
        return (vars(variables["self"]).get(node.attr, getattr(type(variables["self"]), node.attr)),)
    return None


def shows(code, value):
    """Returns whether code contains a literal with a value."""
    return any(isinstance(n, ast.expr) and guarded(lambda: ast.literal_eval(n) == value) is True for n in ast.walk(ast.parse(code)))


def narrow(scene, left, right):
    """Returns the first difference of two values if they are too long to show, and adds its place to the checked
    expression: f(x)["a"] instead of f(x). Returns None if that is not possible."""
    added, wrapper = "", ""
    while max(len(short_repr(v)) for v in (left, right)) > LONG:
        if type(left) is not type(right) or wrapper:
            return None
        if isinstance(left, str) and "\n" in left + right:
            left, right, step = left.splitlines(), right.splitlines(), ".splitlines()"
        elif isinstance(left, dict) and list(left) == list(right):
            key = next(k for k in left if left[k] != right[k])
            left, right, step = left[key], right[key], "[%s]" % short_repr(key)
        elif isinstance(left, (list, tuple)) and any(a != b for a, b in zip(left, right)):
            at = next(i for i, (a, b) in enumerate(zip(left, right)) if a != b)
            left, right, step = left[at], right[at], "[%d]" % at
        elif isinstance(left, (list, tuple, dict)) and len(left) != len(right):
            left, right, step, wrapper = len(left), len(right), "", "len"
        elif isinstance(left, dict):
            left, right, step, wrapper = list(left), list(right), "", "list"
        elif isinstance(left, str):
            at = next((i for i, (a, b) in enumerate(zip(left, right)) if a != b), min(len(left), len(right)))
            left, right = around(left, at), around(right, at)
            break
        else:
            return None
        added += step
    for field in ("call", "short"):
        text = scene.get(field)
        if added + wrapper and text:
            if not isinstance(ast.parse(text, mode="eval").body, (ast.Call, ast.Name, ast.Attribute, ast.Subscript)):
                return None
            scene[field] = "%s(%s)" % (wrapper, text + added) if wrapper else text + added
    scene["part"] = wrapper
    return left, right


def around(text, at):
    """Returns the part of a text around an offset."""
    begin, end = max(0, at - 40), at + 60
    return "..." * (begin > 0) + text[begin:end] + "..." * (end < len(text))


def is_test(path):
    """Returns whether a path looks like a test file, much like isTest in paths.go."""
    parts = path.split("/")
    name = parts[-1]
    return name.startswith("test") or name.endswith("_test.py") or any(p in ("test", "tests", "testing") for p in parts[:-1])


def guarded(function):
    """Returns function(), or the name of the exception that it raises."""
    try:
        return function()
    except Exception as e:
        return "<%s>" % type(e).__name__


def short_repr(value):
    text = guarded(lambda: repr(value))
    return text if len(text) <= MAX_VALUE else text[:MAX_VALUE] + "..."


def unittest_operands(frame):
    """Returns both sides of a unittest assertion, from the frame of the assert method, or None."""
    names = frame.f_code.co_varnames[1:3]
    if len(names) == 2 and names[0] in ("first", "list1", "tuple1", "d1", "set1", "seq1", "member", "expr1"):
        local = frame.f_locals
        if names[0] in local and names[1] in local:
            return local[names[0]], local[names[1]]
    return None


def statement(file, line):
    """Returns the source of the innermost statement at a line, or "" if that is a compound statement."""
    try:
        lines, tree = tracesmith_scene.parse(file)
    except (SyntaxError, ValueError):
        return ""
    best = None
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and node.lineno <= line <= (getattr(node, "end_lineno", None) or node.lineno):
            if best is None or node.lineno >= best.lineno:
                best = node
    if best is None or hasattr(best, "body"):
        return ""
    *first, last = "".join(lines[best.lineno - 1:best.end_lineno]).splitlines()
    return "\n".join(text.strip() for text in first + [tracesmith_scene.without_comment(last, best)])
