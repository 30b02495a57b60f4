"""Tells the scene of a failure: the code of the test up to the failing statement, written as a user of the program would write
it, without the test's assertions."""
import ast
import linecache
import re
import sys
import textwrap

MAX_LINES, MAX_CHARS, MAX_REPR = 18, 900, 80
SIMPLE = (int, float, complex, str, bytes, bool, type(None))
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
COMPARED = {"assertIn": "in", "assertNotIn": "not in", "assertGreater": ">", "assertGreaterEqual": ">=", "assertLess": "<",
            "assertLessEqual": "<=", "assertNotEqual": "!=", "assertIsNot": "is not"}
EQUAL = ("assertEqual", "assertEquals", "assertIs", "assertAlmostEqual", "assertListEqual", "assertTupleEqual", "assertDictEqual",
         "assertSetEqual", "assertSequenceEqual", "assertCountEqual", "assertMultiLineEqual")


class Opaque(Exception):
    """The code cannot be shown outside its test."""


def scene(frame, line):
    """Returns what the failing statement does (see Scene in failure.go), or None."""
    lines = linecache.getlines(frame.f_code.co_filename)
    source = "".join(lines)
    tree = ast.parse(source)
    path = path_to(tree, line)
    inside = max([i for i, n in enumerate(path) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))], default=None)
    if inside is None or inside == len(path) - 1:
        return None
    text = Text(source)
    stmt, raises = path[-1], None
    for node in path[inside + 1:]:
        raises = raises or expected_error(node, text)
    if raises and isinstance(stmt, ast.With):
        if len(stmt.body) != 1:
            return None
        stmt = stmt.body[0]
    if hasattr(stmt, "body"):
        return None
    out = asked(stmt, text)
    if raises:
        out.update(relation="raises", raises=raises)
    nodes = out.pop("nodes")
    out["call"] = of_class(out["call"], frame.f_locals.get("self"))
    try:
        out.update(context(frame, tree, path[inside:], stmt, nodes, text))
    except Opaque:
        pass
    return out


class Text:
    def __init__(self, source):
        self.source, self.lines = source, source.splitlines(True)

    def of(self, node):
        """Returns the source of an expression, or of a statement at no indentation."""
        if isinstance(node, ast.stmt):
            first = min([node.lineno] + [d.lineno for d in getattr(node, "decorator_list", ())])
            return textwrap.dedent("".join(self.lines[first - 1:node.end_lineno])).rstrip()
        return "\n".join(part.strip() for part in (ast.get_source_segment(self.source, node) or "").split("\n"))


def path_to(tree, line):
    """Returns the statements around a line, outermost first."""
    path, body = [], tree.body
    while True:
        found = [s for s in body if min([s.lineno] + [d.lineno for d in getattr(s, "decorator_list", ())]) <= line <= s.end_lineno]
        if len(found) != 1:
            return path
        path.append(found[0])
        body = [s for s in ast.iter_child_nodes(found[0]) if isinstance(s, ast.stmt)]
        for handler in getattr(found[0], "handlers", ()):
            body += handler.body


def has(node, kind):
    return any(isinstance(n, kind) for n in ast.walk(node))


def last_name(node):
    return getattr(node, "attr", getattr(node, "id", ""))


def expected_error(node, text):
    """Returns the name of the exception that a with statement waits for."""
    if isinstance(node, ast.With):
        for item in node.items:
            call = item.context_expr
            if isinstance(call, ast.Call) and call.args and last_name(call.func) in ("raises", "assertRaises", "assertRaisesRegex"):
                return text.of(call.args[0])
    return None


def assertion(stmt):
    """Returns (name, call) of a unittest assertion."""
    call = stmt.value if isinstance(stmt, ast.Expr) else None
    if isinstance(call, ast.Await):
        call = call.value
    name = last_name(call.func) if isinstance(call, ast.Call) else ""
    return (name, call) if name.startswith("assert") else ("", None)


def asked(stmt, text):
    """Returns the expression that a statement checks, what it expects of it, and the nodes of the expression."""
    name, call = assertion(stmt)
    if call is not None:
        args = call.args
        if name in EQUAL and len(args) >= 2:
            return equal(args[0], args[1], text)
        if name == "assertIsNone" and args:
            return equal(args[0], ast.Constant(value=None), text)
        if name in ("assertTrue", "assertFalse") and args:
            return {"relation": name[6:].lower(), "call": text.of(args[0]), "nodes": args[:1]}
        if name in COMPARED and len(args) >= 2:
            return {"relation": "true", "call": "%s %s %s" % (text.of(args[0]), COMPARED[name], text.of(args[1])), "nodes": args[:2]}
        if name == "assertIsInstance" and len(args) >= 2:
            return {"relation": "true", "call": "isinstance(%s, %s)" % (text.of(args[0]), text.of(args[1])), "nodes": args[:2]}
        if name == "assertRaises" and len(args) >= 2:
            called = "%s(%s)" % (text.of(args[1]), ", ".join(text.of(a) for a in args[2:]))
            return {"relation": "raises", "raises": text.of(args[0]), "call": called, "nodes": args[1:]}
        some = [a for a in args if has(a, ast.Call)][:1]
        return {"relation": "other", "call": text.of(some[0]) if some else "", "nodes": some}
    if isinstance(stmt, ast.Assert):
        test = stmt.test
        if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], (ast.Eq, ast.Is)):
            return equal(test.left, test.comparators[0], text)
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return {"relation": "false", "call": text.of(test.operand), "nodes": [test.operand]}
        return {"relation": "true", "call": text.of(test), "nodes": [test]}
    return {"relation": "run", "call": text.of(stmt), "nodes": [stmt]}


def equal(left, right, text):
    """The expected side is the second one, unless only that one calls something."""
    swapped = not has(left, ast.Call) and has(right, ast.Call)
    call, want = (right, left) if swapped else (left, right)
    out = {"relation": "equal", "call": text.of(call), "swapped": swapped, "nodes": [call]}
    if not has(want, (ast.Name, ast.Call, ast.Attribute)):
        out["want"] = "None" if getattr(want, "value", "") is None else text.of(want)
    return out


def context(frame, tree, path, stmt, nodes, text):
    """Returns the code that must run before the statement: imports, values, statements. Raises Opaque if that needs the test."""
    if stmt is not path[-1]:
        path = path + [stmt]
    earlier, looped = [], False
    for outer, inner in zip(path, path[1:]):
        looped = looped or isinstance(outer, (ast.For, ast.While))
        if not isinstance(outer, (ast.FunctionDef, ast.If, ast.For, ast.While)) and not expected_error(outer, text):
            raise Opaque
        blocks = [b for _, b in ast.iter_fields(outer) if isinstance(b, list) and inner in b]
        if not blocks:
            raise Opaque
        earlier += blocks[0][:blocks[0].index(inner)]
    if looped and earlier:
        raise Opaque  # rounds of the loop may have changed something
    before = []
    for s in earlier:
        if isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant):
            continue
        name, call = assertion(s)
        if call is not None or isinstance(s, ast.Assert):
            part = next((a for a in (call.args if call is not None else sides(s.test)) if has(a, ast.Call)), None)
            if part is not None:
                before.append(text.of(part))
                nodes.append(part)
            continue
        error = expected_error(s, text)
        if error and len(s.body) == 1 and isinstance(s.body[0], ast.Expr):
            before.append("try:\n    %s\nexcept %s:\n    pass" % (text.of(s.body[0]).replace("\n", "\n    "), error))
            nodes += s.body
            continue
        if error or any(assertion(n)[1] is not None for n in ast.walk(s) if isinstance(n, ast.stmt)) or has(s, ast.Assert):
            raise Opaque
        before.append(text.of(s))
        nodes.append(s)
    if any(has(n, (ast.Await, ast.Yield, ast.YieldFrom)) or isinstance(n, ast.Return) for n in nodes):
        raise Opaque
    imports, given = needed(frame, tree, nodes)
    fixture = frame.f_locals.get("self")
    before = [of_class(b, fixture) for b in before]
    shown = "\n".join(imports + given + before)
    if len(shown.split("\n")) > MAX_LINES or len(shown) > MAX_CHARS:
        raise Opaque
    return {"imports": imports, "before": given + before, "whole": True}


def sides(test):
    return [test.left] + test.comparators if isinstance(test, ast.Compare) else [test]


def needed(frame, tree, nodes):
    """Returns the imports, and the assignments of values, that nodes need."""
    bound = {n.id for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    bound |= {n.arg for node in nodes for n in ast.walk(node) if isinstance(n, ast.arg)}
    for node in nodes:
        for n in ast.walk(node):
            if isinstance(n, DEFINITIONS):
                bound.add(n.name)
            elif isinstance(n, ast.alias):
                bound.add(n.asname or n.name.split(".")[0])
    fixture, imports = frame.f_locals.get("self"), set()
    attributes = [n for node in nodes for n in ast.walk(node) if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == "self"]
    for n in attributes:
        value = resolved(fixture, n.attr)
        if isinstance(value, type):
            imports.add(import_line(value))
    if any(n.id == "self" for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name)):
        if len(attributes) != sum(n.id == "self" for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name)):
            raise Opaque
        bound.add("self")
    used = {n.id for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name)} - bound
    given = []
    for name in sorted(used):
        if name in frame.f_locals:
            given.append("%s = %s" % (name, simple(frame.f_locals[name])))
            continue
        if name not in frame.f_globals:
            continue  # of the language
        line = import_of(tree, name)
        if line:
            imports.add(line)
        else:
            given.append("%s = %s" % (name, simple(frame.f_globals[name])))
    return sorted(imports), given


def resolved(fixture, attribute):
    """Returns a class of the program, or a plain value, that a test case names as an attribute of its class."""
    value = getattr(type(fixture), attribute, None)
    if attribute in getattr(fixture, "__dict__", {}) or isinstance(value, type) and import_line(value) is None or not isinstance(value, type) and (value is None or not plain(value)):
        raise Opaque
    return value


def import_line(cls):
    root = cls.__module__.split(".")[0]
    for module in (root, cls.__module__):
        if getattr(sys.modules.get(module), cls.__name__, None) is cls and not re.search(r"(^|[._])tests?([._]|$)", module):
            return "from %s import %s" % (module, cls.__name__)
    return None


def of_class(code, fixture):
    """Replaces self.NAME by the class or value that it stands for, where there is one."""
    def known(match):
        try:
            value = resolved(fixture, match.group(1))
        except Opaque:
            return match.group(0)
        return value.__name__ if isinstance(value, type) else repr(value)
    return re.sub(r"\bself\.([A-Za-z_]\w*)\b", known, code)


def import_of(tree, name):
    for node in tree.body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                if (alias.asname or alias.name.split(".")[0]) != name:
                    continue
                what = alias.name + (" as " + alias.asname if alias.asname else "")
                if isinstance(node, ast.Import):
                    return "import " + what
                if node.level:
                    raise Opaque
                return "from %s import %s" % (node.module, what)
    return None


def simple(value):
    """Returns the text of a value that can be written down."""
    if not plain(value):
        raise Opaque
    text = repr(value)
    if len(text) > MAX_REPR:
        raise Opaque
    return text


def plain(value):
    if type(value) in (list, tuple, set, frozenset):
        return len(value) <= 20 and all(map(plain, value))
    if type(value) is dict:
        return len(value) <= 20 and all(map(plain, value)) and all(map(plain, value.values()))
    return type(value) in SIMPLE or type(value) is range
