"""Operators r1 to r5 change conditions and branches."""
import ast

from phrases import OPERATIONS, atomic, gaps, in_parentheses, operand, remove_statement
from registry import Change, operator
from scope import JUMP, constant_condition
from trees import clone, same

NEIGHBOUR = {ast.Lt: (ast.LtE, b"<="), ast.LtE: (ast.Lt, b"<"), ast.Gt: (ast.GtE, b">="), ast.GtE: (ast.Gt, b">"),
             ast.Eq: (ast.NotEq, b"!="), ast.NotEq: (ast.Eq, b"=="), ast.In: (ast.NotIn, b"not in"), ast.NotIn: (ast.In, b"in"),
             ast.Is: (ast.IsNot, b"is not"), ast.IsNot: (ast.Is, b"is")}
OPPOSITES = (ast.Eq, ast.NotEq, ast.In, ast.NotIn, ast.Is, ast.IsNot)


@operator("r1", "relational", "comparison changed at its boundary", "a result is off by one, or the wrong branch is taken",
          ast.Compare)
def boundary(src, node, scope):
    yield from comparisons(src, node, (ast.Lt, ast.LtE, ast.Gt, ast.GtE))


def comparisons(src, node, kinds):
    """Yields Changes that replace the operators of these kinds in a comparison."""
    values = [node.left] + node.comparators
    for i, found in enumerate(gaps(src, values)):
        if same(values[i], values[i + 1]) or not isinstance(node.ops[i], kinds):
            continue
        kind, text = NEIGHBOUR[type(node.ops[i])]
        ops = list(node.ops)
        ops[i] = kind()
        begin, end = found[0][0], found[-1][0] + len(found[-1][1])
        yield Change([(begin, end, text)], [(node, clone(node, ops=ops))])


def plain_else(node):
    """Returns whether an if has an else and no elif."""
    return bool(node.orelse) and not (len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If))


@operator("r2", "relational", "condition negated", "the wrong branch is taken, or a loop does not end",
          ast.If, ast.While, ast.IfExp, ast.comprehension, ast.Compare)
def negate(src, node, scope):
    if isinstance(node, ast.Compare):
        yield from comparisons(src, node, OPPOSITES)
        return
    for test in node.ifs if isinstance(node, ast.comprehension) else [node.test]:
        if constant_condition(test) is not None or isinstance(test, (ast.UnaryOp, ast.NamedExpr)):
            continue  # a5 drops a `not`
        if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], OPPOSITES):
            continue  # the change of the comparison does the same
        if isinstance(node, ast.If) and plain_else(node) or isinstance(node, ast.IfExp):
            continue  # r4 does the same
        begin, end = src.start(test), src.end(test)
        edits = [(begin, begin, b"not ")]
        if isinstance(test, (ast.BoolOp, ast.IfExp, ast.Lambda)):
            edits = [(begin, begin, b"not ("), (end, end, b")")]
        yield Change(edits, [(test, ast.UnaryOp(op=ast.Not(), operand=test))])


@operator("r3", "boolean", "clause of a condition removed, or and/or swapped", "an edge case is not handled",
          ast.BoolOp)
def clauses(src, node, scope):
    values = node.values
    other, text = (ast.Or, b"or") if isinstance(node.op, ast.And) else (ast.And, b"and")
    around = node._parent.op if isinstance(node._parent, ast.BoolOp) else None
    constant = any(isinstance(v, ast.Constant) for v in values)  # `a and None` is obvious
    if not constant and not isinstance(around, other) and not all(same(v, values[0]) for v in values) and not any(isinstance(v, ast.BoolOp) and isinstance(v.op, other) for v in values):
        edits = [(found[0][0], found[0][0] + len(found[0][1]), text) for found in gaps(src, values)]
        wrap = isinstance(node._parent, OPERATIONS) or around is not None
        if not wrap or in_parentheses(src, node, src.start(node._parent)):
            yield Change(edits, [(node, clone(node, op=other()))])
    spans = [src.outer(v, src.start(node) if i == 0 else src.end(values[i - 1]), src.end(node)) for i, v in enumerate(values)]
    for i, value in enumerate(values):
        if any(same(value, v) for v in values if v is not value):
            continue
        edit = (spans[i][0], spans[i + 1][0], b"") if i + 1 < len(values) else (spans[i - 1][1], spans[i][1], b"")
        rest = values[:i] + values[i + 1:]
        if len(rest) == 1 and isinstance(rest[0], ast.Constant):
            continue  # a condition or default that never varies is obvious
        if len(rest) > 1:
            yield Change([edit], [(node, clone(node, values=rest))])
        else:
            yield Change([without_parentheses(src, node, rest[0]) or edit], [(node, rest[0])])


def without_parentheses(src, node, value):
    """Returns the edit that replaces a condition in parentheses by one operand without parentheses, or None if the
    parentheses are needed."""
    begin, end = src.start(node) - 1, src.end(node)
    if src.data[begin:begin + 1] == b"(" and src.data[end:end + 1] == b")" and atomic(src, value) and src.data[begin - 1:begin] in b" =":
        return begin, end + 1, src.text(value)
    return None


@operator("r4", "relational", "branches swapped", "the two cases are mixed up", ast.If, ast.IfExp)
def exchange(src, node, scope):
    if constant_condition(node.test) is not None:
        return
    if isinstance(node, ast.IfExp):
        if same(node.body, node.orelse):
            return
        first = operand(src, node.body, src.start(node), src.end(node))
        second = operand(src, node.orelse, src.end(node.test), src.end(node))
        yield Change([(first[0], first[1], second[2]), (second[0], second[1], first[2])],
                     [(node, clone(node, body=node.orelse, orelse=node.body))],
                     obvious=isinstance(node.body, ast.Constant) or isinstance(node.orelse, ast.Constant))
        return
    if not plain_else(node):
        return
    one, two = ((src.start(b[0]), src.end(b[-1])) for b in (node.body, node.orelse))
    if same(node.body, node.orelse) or src.line_of(one[0]) == src.line_of(src.start(node)) or src.indent(one[0]) != src.indent(two[0]):
        return
    if src.data[two[0] - len(src.indent(two[0])):two[0]].strip(b" \t\f"):
        return  # the else is on one line
    yield Change([(one[0], one[1], src.data[two[0]:two[1]]), (two[0], two[1], src.data[one[0]:one[1]])],
                 [(node, clone(node, body=node.orelse, orelse=node.body))], obvious=True)


@operator("r5", "guard", "guard or early return removed", "an exception occurs later and elsewhere, or a case continues that should have ended",
          ast.If)
def guard(src, node, scope):
    if constant_condition(node.test) is not None or node.orelse or is_elif(src, node):
        return
    if isinstance(node.body[-1], JUMP):
        yield Change(*remove_statement(src, node), obvious=True)
    else:
        begin, end = src.outer(node.test, src.start(node), None)
        yield Change([(begin, end, b"False")], [(node.test, ast.Constant(value=False, kind=None))], obvious=True)


def is_elif(src, node):
    return src.data.startswith(b"elif", src.start(node))
