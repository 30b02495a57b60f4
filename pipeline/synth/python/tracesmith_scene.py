"""Determines the scene of a failure: the code of the test up to the failing statement, rewritten as a user of the
program would write it, without assertions."""
import ast
import linecache
import re
import sys
import textwrap

MAX_LINES, MAX_CHARS, MAX_REPR = 18, 900, 80
SIMPLE = (int, float, complex, str, bytes, bool, type(None))
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
COMPARISONS = {"assertIn": "in", "assertNotIn": "not in", "assertGreater": ">", "assertGreaterEqual": ">=", "assertLess": "<",
               "assertLessEqual": "<=", "assertNotEqual": "!=", "assertIsNot": "is not"}
EQUAL = ("assertEqual", "assertEquals", "assertIs", "assertAlmostEqual", "assertListEqual", "assertTupleEqual", "assertDictEqual",
         "assertSetEqual", "assertSequenceEqual", "assertCountEqual", "assertMultiLineEqual")


class NeedsTest(Exception):
    """The code cannot be shown outside its test."""


def scene(frame, line):
    """Returns a description of the failing statement (see Scene in failure.go), or None."""
    lines = linecache.getlines(frame.f_code.co_filename)
    code = "".join(lines)
    tree = ast.parse(code)
    path = path_to(tree, line)
    innermost = max([i for i, n in enumerate(path) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))], default=None)
    if innermost is None or innermost == len(path) - 1:
        return None
    source = Source(code)
    stmt, raises = path[-1], None
    for node in path[innermost + 1:]:
        raises = raises or expected_error(node, source)
    if raises and isinstance(stmt, ast.With):
        if len(stmt.body) != 1:
            return None
        stmt = stmt.body[0]
    if hasattr(stmt, "body"):
        return None
    out = checked_expression(stmt, source)
    if raises:
        out.update(relation="raises", raises=raises)
    nodes = out.pop("nodes")
    out["call"] = replace_self(out["call"], frame.f_locals.get("self"))
    try:
        out.update(context(frame, tree, path[innermost:], stmt, nodes, source))
    except NeedsTest:
        pass
    return out


class Source:
    """The source text of a file."""

    def __init__(self, code):
        self.code, self.lines = code, code.splitlines(True)

    def text(self, node):
        """Returns the source of an expression, or of a statement at no indentation."""
        if isinstance(node, ast.stmt):
            first = min([node.lineno] + [d.lineno for d in getattr(node, "decorator_list", ())])
            return textwrap.dedent("".join(self.lines[first - 1:node.end_lineno])).rstrip()
        return "\n".join(part.strip() for part in (ast.get_source_segment(self.code, node) or "").split("\n"))


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


def contains(node, kind):
    """Returns whether a node contains a node of a kind."""
    return any(isinstance(n, kind) for n in ast.walk(node))


def last_name(node):
    """Returns the last part of a name, such as c of a.b.c."""
    return getattr(node, "attr", getattr(node, "id", ""))


def expected_error(node, source):
    """Returns the source of the exception that a "with pytest.raises(...)" or similar expects, or None."""
    if isinstance(node, ast.With):
        for item in node.items:
            call = item.context_expr
            if isinstance(call, ast.Call) and call.args and last_name(call.func) in ("raises", "assertRaises", "assertRaisesRegex"):
                return source.text(call.args[0])
    return None


def assertion(stmt):
    """Returns (name, call) of a unittest assertion; ("", None) for other statements."""
    call = stmt.value if isinstance(stmt, ast.Expr) else None
    if isinstance(call, ast.Await):
        call = call.value
    name = last_name(call.func) if isinstance(call, ast.Call) else ""
    return (name, call) if name.startswith("assert") else ("", None)


def checked_expression(stmt, source):
    """Returns the expression that a statement checks, what the statement expects of it, and the nodes of the expression."""
    name, call = assertion(stmt)
    if call is not None:
        args = call.args
        if name in EQUAL and len(args) >= 2:
            return equal(args[0], args[1], source)
        if name == "assertIsNone" and args:
            return equal(args[0], ast.Constant(value=None), source)
        if name in ("assertTrue", "assertFalse") and args:
            return {"relation": name[6:].lower(), "call": source.text(args[0]), "nodes": args[:1]}
        if name in COMPARISONS and len(args) >= 2:
            return {"relation": "true", "call": "%s %s %s" % (source.text(args[0]), COMPARISONS[name], source.text(args[1])), "nodes": args[:2]}
        if name == "assertIsInstance" and len(args) >= 2:
            return {"relation": "true", "call": "isinstance(%s, %s)" % (source.text(args[0]), source.text(args[1])), "nodes": args[:2]}
        if name == "assertRaises" and len(args) >= 2:
            called = "%s(%s)" % (source.text(args[1]), ", ".join(source.text(a) for a in args[2:]))
            return {"relation": "raises", "raises": source.text(args[0]), "call": called, "nodes": args[1:]}
        calls = [a for a in args if contains(a, ast.Call)][:1]
        return {"relation": "other", "call": source.text(calls[0]) if calls else "", "nodes": calls}
    if isinstance(stmt, ast.Assert):
        test = stmt.test
        if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], (ast.Eq, ast.Is)):
            return equal(test.left, test.comparators[0], source)
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return {"relation": "false", "call": source.text(test.operand), "nodes": [test.operand]}
        return {"relation": "true", "call": source.text(test), "nodes": [test]}
    return {"relation": "run", "call": source.text(stmt), "nodes": [stmt]}


def equal(left, right, source):
    """Describes a check that two sides are equal. The second side is taken as the expected one, unless it contains a
    call and the first one does not."""
    swapped = not contains(left, ast.Call) and contains(right, ast.Call)
    call, want = (right, left) if swapped else (left, right)
    out = {"relation": "equal", "call": source.text(call), "swapped": swapped, "nodes": [call]}
    if not contains(want, (ast.Name, ast.Call, ast.Attribute)):
        out["want"] = "None" if getattr(want, "value", "") is None else source.text(want)
    return out


def context(frame, tree, path, stmt, nodes, source):
    """Returns the code that must run before the statement: imports, assignments and statements. Raises NeedsTest if that
    code cannot run outside the test."""
    if stmt is not path[-1]:
        path = path + [stmt]
    earlier, looped = [], False
    for outer, inner in zip(path, path[1:]):
        looped = looped or isinstance(outer, (ast.For, ast.While))
        if not isinstance(outer, (ast.FunctionDef, ast.If, ast.For, ast.While)) and not expected_error(outer, source):
            raise NeedsTest
        blocks = [b for _, b in ast.iter_fields(outer) if isinstance(b, list) and inner in b]
        if not blocks:
            raise NeedsTest
        earlier += blocks[0][:blocks[0].index(inner)]
    if looped and earlier:
        raise NeedsTest  # earlier iterations of the loop may have changed something
    before = []
    for s in earlier:
        if isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant):
            continue
        name, call = assertion(s)
        if call is not None or isinstance(s, ast.Assert):
            part = next((a for a in (call.args if call is not None else sides(s.test)) if contains(a, ast.Call)), None)
            if part is not None:
                before.append(source.text(part))
                nodes.append(part)
            continue
        error = expected_error(s, source)
        if error and len(s.body) == 1 and isinstance(s.body[0], ast.Expr):
            before.append("try:\n    %s\nexcept %s:\n    pass" % (source.text(s.body[0]).replace("\n", "\n    "), error))
            nodes += s.body
            continue
        if error or any(assertion(n)[1] is not None for n in ast.walk(s) if isinstance(n, ast.stmt)) or contains(s, ast.Assert):
            raise NeedsTest
        before.append(source.text(s))
        nodes.append(s)
    if any(contains(n, (ast.Await, ast.Yield, ast.YieldFrom)) or isinstance(n, ast.Return) for n in nodes):
        raise NeedsTest
    imports, assignments = needed(frame, tree, nodes)
    test_case = frame.f_locals.get("self")
    before = [replace_self(b, test_case) for b in before]
    code = "\n".join(imports + assignments + before)
    if len(code.split("\n")) > MAX_LINES or len(code) > MAX_CHARS:
        raise NeedsTest
    return {"imports": imports, "before": assignments + before, "whole": True}


def sides(test):
    """Returns the operands of a comparison; for any other expression, the expression itself."""
    return [test.left] + test.comparators if isinstance(test, ast.Compare) else [test]


def needed(frame, tree, nodes):
    """Returns the imports and the assignments that nodes need to run without the test."""
    bound = {n.id for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    bound |= {n.arg for node in nodes for n in ast.walk(node) if isinstance(n, ast.arg)}
    for node in nodes:
        for n in ast.walk(node):
            if isinstance(n, DEFINITIONS):
                bound.add(n.name)
            elif isinstance(n, ast.alias):
                bound.add(n.asname or n.name.split(".")[0])
    test_case, imports = frame.f_locals.get("self"), set()
    attributes = [n for node in nodes for n in ast.walk(node) if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == "self"]
    for n in attributes:
        value = class_attribute(test_case, n.attr)
        if isinstance(value, type):
            imports.add(import_line(value))
    if any(n.id == "self" for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name)):
        if len(attributes) != sum(n.id == "self" for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name)):
            raise NeedsTest
        bound.add("self")
    used = {n.id for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name)} - bound
    assignments = []
    for name in sorted(used):
        if name in frame.f_locals:
            assignments.append("%s = %s" % (name, literal(frame.f_locals[name])))
            continue
        if name not in frame.f_globals:
            continue  # a builtin
        line = find_import(tree, name)
        if line:
            imports.add(line)
        else:
            assignments.append("%s = %s" % (name, literal(frame.f_globals[name])))
    return sorted(imports), assignments


def class_attribute(test_case, attribute):
    """Returns the value of a class attribute of a test case, which must be a class of the program or a plain value.
    Raises NeedsTest for anything else."""
    value = getattr(type(test_case), attribute, None)
    if attribute in getattr(test_case, "__dict__", {}) or isinstance(value, type) and import_line(value) is None or not isinstance(value, type) and (value is None or not plain(value)):
        raise NeedsTest
    return value


def import_line(cls):
    """Returns the statement that imports a class from its package or module, or None if a user cannot import it."""
    root = cls.__module__.split(".")[0]
    for module in (root, cls.__module__):
        if getattr(sys.modules.get(module), cls.__name__, None) is cls and not re.search(r"(^|[._])tests?([._]|$)", module):
            return "from %s import %s" % (module, cls.__name__)
    return None


def replace_self(code, test_case):
    """Replaces self.NAME with the class or plain value that it stands for; leaves it if it stands for anything else."""
    def replacement(match):
        try:
            value = class_attribute(test_case, match.group(1))
        except NeedsTest:
            return match.group(0)
        return value.__name__ if isinstance(value, type) else repr(value)
    return re.sub(r"\bself\.([A-Za-z_]\w*)\b", replacement, code)


def find_import(tree, name):
    """Returns the statement at the top level of a test file that imports a name, or None. Raises NeedsTest if the
    import is relative."""
    for node in tree.body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                if (alias.asname or alias.name.split(".")[0]) != name:
                    continue
                imported = alias.name + (" as " + alias.asname if alias.asname else "")
                if isinstance(node, ast.Import):
                    return "import " + imported
                if node.level:
                    raise NeedsTest
                return "from %s import %s" % (node.module, imported)
    return None


def literal(value):
    """Returns the source of a plain value. Raises NeedsTest for other or long values."""
    if not plain(value):
        raise NeedsTest
    text = repr(value)
    if len(text) > MAX_REPR:
        raise NeedsTest
    return text


def plain(value):
    """Returns whether repr(value) is source code that creates the value."""
    if type(value) in (list, tuple, set, frozenset):
        return len(value) <= 20 and all(map(plain, value))
    if type(value) is dict:
        return len(value) <= 20 and all(map(plain, value)) and all(map(plain, value.values()))
    return type(value) in SIMPLE or type(value) is range
