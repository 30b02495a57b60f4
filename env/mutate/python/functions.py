"""Whole functions: lists them, shows them without their body, and replaces their text."""
import ast

from scope import dotted_name
from sites import check_compiles
from source import Refused, parse
from trees import fingerprint, functions, has_docstring, same


def outline(src):
    """Lists the functions of a file with the names that they call."""
    out = []
    for name, node in functions(src.tree).items():
        body = node.body[1:] if has_docstring(node.body) else node.body
        calls = {dotted_name(n).split(".")[-1] for n in ast.walk(node) if isinstance(n, ast.Call) and dotted_name(n)}
        out.append({"file": src.path, "name": name, "line": node.lineno, "end_line": node.end_lineno, "before": fingerprint(node),
                    "statements": sum(isinstance(n, ast.stmt) for s in body for n in ast.walk(s)), "calls": sorted(calls)})
    return out


def lines_of(src, node):
    """Returns the span of the lines of a function with its decorators, or None if there is other code on these
    lines."""
    return src.whole_lines(src.start(node), src.end(node))


def show_function(src, name):
    """Returns the text of a function, and the text of its file with `...` in place of the function's body."""
    node = function(src, name)
    span = lines_of(src, node)
    first = src.start(node.body[1] if has_docstring(node.body) and len(node.body) > 1 else node.body[0])
    end = src.end(node)
    return {"text": dedent(src, span).decode("utf-8"), "around": (src.data[:first] + b"..." + src.data[end:]).decode("utf-8")}


def function(src, name):
    node = functions(src.tree).get(name)
    if node is None:
        raise Refused("%s: has no function %s" % (src.path, name))
    if lines_of(src, node) is None or src.line_of(src.start(node.body[0])) == src.line_of(src.start(node)):
        raise Refused("%s: %s shares its lines with something else" % (src.path, name))
    return node


def dedent(src, span):
    indent = src.indent(span[0])
    return b"".join(line[len(indent):] if line.startswith(indent) else line for line in src.data[span[0]:span[1]].splitlines(True))


def replace_functions(src, texts):
    """Returns the file with functions replaced, its tree and the edits. texts is {name: text of one function with any
    indentation}."""
    edits, want = [], {}
    for name, text in texts.items():
        node = function(src, name)
        new, tree = fit_function(src, node, text)
        if same(tree, node):
            raise Refused("the change changes nothing")
        if type(tree) is not type(node) or tree.name != node.name or not same(tree.args, node.args):
            raise Refused("%s: the function must keep its name, kind and parameters" % name)
        begin, end = lines_of(src, node)
        edits.append((begin, end, new))
        want[name] = fingerprint(tree)
    data = src.splice(edits)
    got = parse(data.decode("utf-8"))
    found = functions(got)
    for name, node in functions(src.tree).items():
        if name in want or not any(name.startswith(n + ".") or n.startswith(name + ".") for n in want):
            if name not in found or fingerprint(found[name]) != want.get(name, fingerprint(node)):
                raise Refused("the text does not parse to the intended change")
    for name in texts:
        check_compiles(found[name], src.path)
    return src.encode(data), got, edits


def fit_function(src, node, text):
    """Returns the text of a function as bytes, indented like the function that it replaces, and its tree."""
    lines = text.replace("\r\n", "\n").expandtabs(8).rstrip().split("\n") if "\t" in text and b"\t" not in src.data else \
        text.replace("\r\n", "\n").rstrip().split("\n")
    while lines and not lines[0].strip():
        lines.pop(0)
    own = lines[0][:len(lines[0]) - len(lines[0].lstrip())] if lines else ""
    lines = [line[len(own):] if line.startswith(own) else line for line in lines]
    body = parse("\n".join(lines)).body
    if len(body) != 1 or not isinstance(body[0], (ast.FunctionDef, ast.AsyncFunctionDef)):
        raise Refused("the text is not one function")
    fixed = {i for n in ast.walk(body[0]) if isinstance(n, (ast.Constant, ast.JoinedStr)) for i in range(n.lineno + 1, n.end_lineno + 1)}
    indent, end = src.indent(src.start(node)), src.newline()
    out = b""
    for i, line in enumerate(lines, 1):
        out += (b"" if i in fixed or not line else indent) + line.encode("utf-8") + end
    last = lines_of(src, node)[1]
    return (out if src.data[last - 1:last] in (b"\n", b"\r") else out[:-len(end)]), body[0]


def restore_functions(src, older, newer):
    """Returns the file with the older versions of the functions that differ between older and newer. In src, these
    functions must still be as in newer."""
    before, after, here = functions(older.tree), functions(newer.tree), functions(src.tree)
    texts, missed = {}, []
    for name in sorted(set(before) | set(after)):
        if name in before and name in after and fingerprint(before[name]) == fingerprint(after[name]):
            continue
        if any(name.startswith(n + ".") for n in texts):
            continue
        whole = name in before and name in after and name in here and fingerprint(here[name]) == fingerprint(after[name])
        inner = [n for n in after if n.startswith(name + ".")]
        if whole and not inner and lines_of(older, before[name]):
            texts[name] = dedent(older, lines_of(older, before[name])).decode("utf-8")
        elif not inner:
            missed.append(name)
    if missed or not texts:
        raise Refused("%s: %s cannot be put back: it was changed again" % (src.path, (missed or ["what differs"])[0]))
    return replace_functions(src, texts)
