"""Determines the scene of a failure: the code of the test up to the failing statement, rewritten as a user of the
program would write it, without assertions."""
import ast
import linecache
import re
import sys
import textwrap

import tracesmith_setup
from tracesmith_steps import DEFINITIONS, NeedsTest, SIMPLE, assertion, assignment, contains, expected_error, inlined, last_name, names_in, steps_of, without_unused

MAX_LINES, MAX_CHARS, MAX_REPR = 18, 900, 80
COMPARISONS = {"assertIn": "in", "assertNotIn": "not in", "assertGreater": ">", "assertGreaterEqual": ">=", "assertLess": "<",
               "assertLessEqual": "<=", "assertNotEqual": "!=", "assertIsNot": "is not"}
EQUAL = ("assertEqual", "assertEquals", "assertIs", "assertAlmostEqual", "assertListEqual", "assertTupleEqual", "assertDictEqual",
         "assertSetEqual", "assertSequenceEqual", "assertCountEqual", "assertMultiLineEqual")


PARSED = {}


def parse(file):
    """Returns the lines of a file and its syntax tree, which is shared."""
    if file not in PARSED:
        lines = linecache.getlines(file)
        PARSED[file] = lines, ast.parse("".join(lines))
    return PARSED[file]


def scene(frame, line, caller=None):
    """Returns a description of the failing statement (see Scene in failure.go), or None. If the frame is one of a helper
    of a test, caller is the frame of the test and its line."""
    lines, tree = parse(frame.f_code.co_filename)
    code = "".join(lines)
    setup, code, tree = tracesmith_setup.replace_attributes(frame, caller, code, tree)
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
    out = checked_expression(stmt, source, given(path[innermost]))
    if raises:
        out.update(relation="raises", raises=raises)
    nodes, want = out.pop("nodes"), out.pop("expected", None)
    if isinstance(want, ast.Name) and want.id in frame.f_locals:
        try:
            out["want"] = literal(frame.f_locals[want.id])
        except NeedsTest:
            pass
    try:
        out.update(context(frame, tree, path[innermost:], stmt, out["call"], nodes, source, setup))
    except NeedsTest:
        if not all(is_public(frame, tree, name) for name in names_in(nodes)):
            out["call"] = ""  # without the test, its names have no meaning
    out["call"] = replace_self(out["call"], frame.f_locals.get("self"))
    out["short"] = without_arguments(out["call"])
    return out


def without_arguments(call):
    """Returns f(...) for f(1, 2) and f() for f(), or "" if the expression is not a call."""
    try:
        node = ast.parse(call, mode="eval").body
    except SyntaxError:
        return ""
    if not isinstance(node, ast.Call):
        return ""
    return ast.get_source_segment(call, node.func) + ("(...)" if node.args + node.keywords else "()")


class Source:
    """The source text of a file."""

    def __init__(self, code):
        self.code, self.lines = code, code.splitlines(True)

    def text(self, node):
        """Returns the source of an expression or a statement, without the indentation of its block."""
        if isinstance(node, ast.stmt):
            first = min([node.lineno] + [d.lineno for d in getattr(node, "decorator_list", ())])
            last = without_comment(self.lines[node.end_lineno - 1], node)
            return textwrap.dedent("".join(self.lines[first - 1:node.end_lineno - 1]) + last).rstrip()
        first, *rest = (ast.get_source_segment(self.code, node) or "").split("\n")
        line = self.lines[node.lineno - 1]
        indent = line[:len(line) - len(line.lstrip())]
        return "\n".join([first] + [part[len(indent):] if part.startswith(indent) else part.strip() for part in rest])


def without_comment(line, stmt):
    """Returns the last line of a statement without what follows the statement."""
    return line.encode("utf-8")[:stmt.end_col_offset].decode("utf-8")


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


def given(function):
    """Returns the parameters of a test that it does not assign."""
    assigned = {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return {a.arg for a in function.args.args + function.args.kwonlyargs} - assigned - {"self"}


def checked_expression(stmt, source, given):
    """Returns the expression that a statement checks, what the statement expects of it, and the nodes of the expression.
    The names in given are values that the test is called with."""
    name, call = assertion(stmt)
    if call is not None:
        args = call.args
        if name in EQUAL and len(args) >= 2:
            return equal(args[0], args[1], source, given)
        if name == "assertIsNone" and args:
            return equal(args[0], ast.Constant(value=None), source, given)
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
            return equal(test.left, test.comparators[0], source, given)
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return {"relation": "false", "call": source.text(test.operand), "nodes": [test.operand]}
        return {"relation": "true", "call": source.text(test), "nodes": [test]}
    if isinstance(stmt, ast.Assign) and len(stmt.targets) == 1 and isinstance(stmt.targets[0], ast.Name):
        stmt = stmt.value  # the variable is of no use, because the statement fails
    return {"relation": "run", "call": source.text(stmt), "nodes": [stmt]}


def equal(left, right, source, given):
    """Describes a check that two sides are equal. The second side is taken as the expected one, unless only the first one
    is made of constants and given values, or only the second one contains a call."""
    fixed = [not contains(n, ast.Call) and all(x.id in given for x in ast.walk(n) if isinstance(x, ast.Name)) for n in (left, right)]
    swapped = fixed == [True, False] or not contains(left, ast.Call) and contains(right, ast.Call)
    call, want = (right, left) if swapped else (left, right)
    out = {"relation": "equal", "call": source.text(call), "swapped": swapped, "nodes": [call], "expected": want}
    if not contains(want, (ast.Name, ast.Call, ast.Attribute)):
        out["want"] = "None" if getattr(want, "value", "") is None else source.text(want)
    return out


def context(frame, tree, path, stmt, call, nodes, source, setup):
    """Returns the code that must run before the statement: imports, assignments and statements, beginning with those
    of setup. It also replaces the checked expression, call, by one with fewer variables. Raises NeedsTest if the code
    cannot run outside the test."""
    if stmt is not path[-1]:
        path = path + [stmt]
    earlier, looped = list(setup), False
    for outer, inner in zip(path, path[1:]):
        looped = looped or isinstance(outer, (ast.For, ast.While))
        if not isinstance(outer, (ast.FunctionDef, ast.If, ast.For, ast.While)) and not expected_error(outer, source):
            raise NeedsTest
        blocks = [b for _, b in ast.iter_fields(outer) if isinstance(b, list) and inner in b]
        if not blocks:
            raise NeedsTest
        earlier += blocks[0][:blocks[0].index(inner)]
    if looped and len(earlier) > len(setup):
        raise NeedsTest  # earlier iterations of the loop may have changed something
    steps = without_unused([step for s in earlier for step in steps_of(s, frame, source)], nodes, frame)
    nodes = nodes + [s.node for s in steps]
    if any(contains(n, (ast.Await, ast.Yield, ast.YieldFrom)) or isinstance(n, ast.Return) for n in nodes):
        raise NeedsTest
    imports, values = needed(frame, tree, nodes)
    call, steps = inlined(call, [assignment(name, values[name]) for name in sorted(values)] + steps)
    before = [replace_self(s.text, frame.f_locals.get("self")) for s in steps]
    code = "\n".join(imports + before)
    if len(code.split("\n")) > MAX_LINES or len(code) > MAX_CHARS:
        raise NeedsTest
    return {"call": call, "imports": imports, "before": before, "whole": True}


def needed(frame, tree, nodes):
    """Returns the imports that nodes need to run without the test, and the values of the variables that they need."""
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
    values = {}
    for name in sorted(used):
        if name in frame.f_locals:
            values[name] = literal(frame.f_locals[name])
            continue
        if name not in frame.f_globals:
            continue  # a builtin
        line = find_import(frame, tree, name)
        if line:
            imports.add(line)
        else:
            values[name] = literal(frame.f_globals[name])
    return merged(imports), values


def merged(imports):
    """Returns import statements, with a single one for all names of a module."""
    names = {}
    for line in sorted(imports):
        module, _, name = line.partition(" import ")
        names.setdefault(module, []).append(name)
    return [module + (" import " + ", ".join(names[module]) if names[module] != [""] else "") for module in names]


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
        if getattr(sys.modules.get(module), cls.__name__, None) is cls and not TEST_MODULE.search(module):
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


TEST_MODULE = re.compile(r"(^|[._])tests?([._]|$)|^(doctest|hypothesis|mock|nose|pytest|unittest)\b")


def find_import(frame, tree, name):
    """Returns the statement at the top level of a test file that imports a name, or None. Raises NeedsTest if it
    imports from the tests."""
    for node in tree.body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                if (alias.asname or alias.name.split(".")[0]) != name:
                    continue
                module = alias.name if isinstance(node, ast.Import) else absolute_name(frame, node)
                if TEST_MODULE.search(module):
                    raise NeedsTest
                imported = alias.name + (" as " + alias.asname if alias.asname else "")
                return "import " + imported if isinstance(node, ast.Import) else "from %s import %s" % (module, imported)
    return None


def absolute_name(frame, node):
    """Returns the name of the module that a "from ... import" reads. Raises NeedsTest if it is outside of a package."""
    if not node.level:
        return node.module
    parts = (frame.f_globals.get("__package__") or "").split(".")
    base = parts[:len(parts) - node.level + 1]
    if not all(base) or not base:
        raise NeedsTest
    return ".".join(base + ([node.module] if node.module else []))


def is_public(frame, tree, name):
    """Returns whether a user can write a name: it is a builtin or imported, or self, which replace_self handles."""
    try:
        return name == "self" or name not in frame.f_locals and (name not in frame.f_globals or bool(find_import(frame, tree, name)))
    except NeedsTest:
        return False


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
