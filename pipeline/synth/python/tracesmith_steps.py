"""Turns the statements of a test before the failing one into the steps that a user of the program would take."""
import ast
import types

SIMPLE = (int, float, complex, str, bytes, bool, type(None))
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
STATELESS = (type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType)


class NeedsTest(Exception):
    """The code cannot be shown outside its test."""


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
    call = stmt.value if isinstance(stmt, (ast.Expr, ast.Return)) else None
    if isinstance(call, ast.Await):
        call = call.value
    name = last_name(call.func) if isinstance(call, ast.Call) else ""
    return (name, call) if name.startswith("assert") else ("", None)


class Step:
    """A statement or an expression that runs before the failing statement. For an assignment, value is the source of
    what it assigns."""

    def __init__(self, node, text, value=""):
        self.node, self.text, self.value = node, text, value


def steps_of(stmt, frame, source):
    """Yields what a user would run instead of a statement of a test. Raises NeedsTest if that cannot run outside the
    test."""
    if isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Constant):
        return
    _, call = assertion(stmt)
    error = expected_error(stmt, source)
    if call is not None or isinstance(stmt, ast.Assert):
        part = next((a for a in (call.args if call is not None else sides(stmt.test)) if contains(a, (ast.Call, ast.BinOp))), None)
        if part is not None and may_change_objects(part, frame):
            yield Step(part, source.text(part))
    elif error and len(stmt.body) == 1 and isinstance(stmt.body[0], ast.Expr):
        if may_change_objects(stmt.body[0], frame):
            yield Step(stmt.body[0], "try:\n    %s\nexcept %s:\n    pass" % (source.text(stmt.body[0]).replace("\n", "\n    "), error))
    elif error or any(assertion(n)[1] is not None for n in ast.walk(stmt) if isinstance(n, ast.stmt)) or contains(stmt, ast.Assert):
        raise NeedsTest
    else:
        yield Step(stmt, source.text(stmt) + "\n" * isinstance(stmt, DEFINITIONS), source.text(stmt.value) if isinstance(stmt, ast.Assign) else "")


PURE = {"len", "isinstance", "issubclass", "str", "repr", "list", "tuple", "set", "dict", "sorted", "sum", "min", "max", "int", "float",
        "bool", "type", "hasattr", "getattr", "callable", "id", "hash"}


def may_change_objects(node, frame):
    """Returns whether an expression may matter for later ones, although they do not use its value: it calls something,
    or uses an operator, with a local variable that is not a plain immutable value."""
    calls = [n for n in ast.walk(node) if isinstance(n, ast.Call)]
    if not contains(node, ast.BinOp) and all(isinstance(n.func, ast.Name) and n.func.id in PURE for n in calls):
        return False
    values = [frame.f_locals[n] for n in names_in([node]) if n in frame.f_locals and n != "self"]
    return any(type(v) not in SIMPLE and not isinstance(v, STATELESS) for v in values)


def without_unused(steps, nodes, frame):
    """Returns the steps without assignments to variables that later code does not use."""
    used, kept = names_in(nodes), []
    for step in reversed(steps):
        stmt = step.node
        if isinstance(stmt, ast.Assign) and all(isinstance(t, ast.Name) and t.id not in used for t in stmt.targets) and \
                not (contains(stmt.value, (ast.Call, ast.Await)) and may_change_objects(stmt.value, frame)):
            continue
        used |= names_in([stmt])
        kept.append(step)
    return kept[::-1]


def assignment(name, value):
    """Returns the step that assigns a value, given as source, to a variable."""
    text = "%s = %s" % (name, value)
    return Step(ast.parse(text).body[0], text, value)


def inlined(call, steps):
    """Returns an expression and the steps before it, after replacing variables that only the expression uses by what is
    assigned to them: f(1).g() for x = f(1) and x.g()."""
    steps = list(steps)
    for step in steps[::-1]:
        rest = [s for s in steps if s is not step]
        pure = not contains(step.node, ast.Call)
        target = step.node.targets[0] if isinstance(step.node, ast.Assign) and len(step.node.targets) == 1 else None
        if isinstance(target, ast.Name) and (pure or step is steps[-1]) and target.id not in names_in([s.node for s in rest]):
            new = substituted(call, step)
            if new:
                call, steps = new, rest
    return call, steps


MAX_INLINE = 90
ATOMS = (ast.Call, ast.Name, ast.Attribute, ast.Subscript, ast.List, ast.Dict, ast.Set)


def substituted(call, step):
    """Returns an expression in which a variable is replaced by its value, or None if that is not possible, or long."""
    name, value, text = step.node.targets[0].id, step.node.value, step.value
    try:
        tree = ast.parse(call, mode="eval")
    except SyntaxError:
        return None
    uses = [(parent, n) for parent in ast.walk(tree) for n in ast.iter_child_nodes(parent) if isinstance(n, ast.Name) and n.id == name]
    if len(uses) != 1 or "\n" in call + text or contains(tree, (ast.JoinedStr, ast.Lambda, ast.comprehension)):
        return None
    parent, use = uses[0]
    if isinstance(value, ast.Tuple) and not text.startswith("("):
        text = "(" + text + ")"
    argument = isinstance(parent, (ast.Call, ast.keyword, ast.Expression)) and use is not getattr(parent, "func", None)
    if not argument and not isinstance(value, ATOMS) and not (isinstance(value, ast.Constant) and not isinstance(parent, ast.Attribute)):
        return None
    data = call.encode()
    new = (data[:use.col_offset] + text.encode() + data[use.col_offset + len(name.encode()):]).decode()
    return new if len(new) <= MAX_INLINE else None


def names_in(nodes):
    return {n.id for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name)}


def sides(test):
    """Returns the operands of a comparison; for any other expression, the expression itself, without a negation."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return sides(test.operand)
    return [test.left] + test.comparators if isinstance(test, ast.Compare) else [test]
