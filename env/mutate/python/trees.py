"""Operations on syntax trees: copying, replacing, comparing, and hashing. Hashes do not depend on the version of
Python."""
import ast
import hashlib

IGNORED = {"ctx", "kind", "type_comment", "type_ignores"}
Index = getattr(ast, "Index", None) if not hasattr(ast, "unparse") else None  # a separate class of nodes up to Python 3.8


def clone(node, **changed):
    """Returns a shallow copy of a node with some fields changed."""
    fields = {f: getattr(node, f, None) for f in node._fields}
    fields.update(changed)
    return type(node)(**fields)


def name(identifier):
    return ast.Name(id=identifier, ctx=ast.Load())


def number(n):
    """Returns the tree that an integer literal parses to."""
    value = ast.Constant(value=abs(n), kind=None)
    return ast.UnaryOp(op=ast.USub(), operand=value) if n < 0 else value


def index_expression(index):
    """Returns the index expression of a subscript."""
    return index.value if Index is not None and isinstance(index, Index) else index


def rebuild(node, swaps, active=()):
    """Returns a tree with nodes replaced: swaps maps id(node) to a node or, for a statement, to a list. A replacement
    may contain the node that it replaces."""
    if isinstance(node, list):
        out = []
        for item in node:
            new = rebuild(item, swaps, active)
            if isinstance(new, list):
                out.extend(new)
            else:
                out.append(new)
        return out
    if not isinstance(node, ast.AST):
        return node
    if id(node) in swaps and id(node) not in active:
        return rebuild(swaps[id(node)], swaps, active + (id(node),))
    return type(node)(**{f: rebuild(getattr(node, f, None), swaps, active) for f in node._fields})


def same(a, b):
    if isinstance(a, ast.AST):
        if type(a) is not type(b):
            return False
        return all(same(getattr(a, f, None), getattr(b, f, None)) for f in a._fields if f not in IGNORED)
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and (a == b or a != a) and repr(a) == repr(b)


def children(node):
    """Yields (field, child) in the order of the fields, which is mostly the order in the source."""
    for field in node._fields:
        value = getattr(node, field, None)
        if isinstance(value, ast.AST):
            yield field, value
        elif isinstance(value, list):
            for item in value:
                if isinstance(item, ast.AST):
                    yield field, item


def has_docstring(body):
    return bool(body) and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) and isinstance(body[0].value.value, str)


def append_text(node, out):
    """Appends a text form of a tree to out, without positions, contexts, docstrings and the content of literals of 40
    characters or more."""
    if isinstance(node, list):
        out.append("[")
        for item in node:
            append_text(item, out)
        out.append("]")
    elif Index is not None and isinstance(node, Index):
        append_text(node.value, out)
    elif isinstance(node, ast.Constant):
        long = isinstance(node.value, (str, bytes)) and len(node.value) >= 40
        out.append("(%s)" % ("long" if long else repr(node.value)))
    elif isinstance(node, ast.AST):
        out.append("(" + type(node).__name__)
        for f in sorted(node._fields):
            value = getattr(node, f, None)
            if f == "body" and isinstance(value, list) and has_docstring(value):
                value = value[1:]
            if f not in IGNORED and value not in (None, []):
                out.append(" %s=" % f)
                append_text(value, out)
        out.append(")")
    else:
        out.append(repr(node))


def fingerprint(node):
    out = []
    append_text(node, out)
    return hashlib.sha256("".join(out).encode("utf-8", "surrogatepass")).hexdigest()


def shape_hash(*versions):
    """Returns one hash of several versions of a function. The hash ignores the names of the function and of its
    variables."""
    names, out = {}, []
    for function in versions:
        names.setdefault(function.name, "f")
        for n in ast.walk(function):
            if isinstance(n, ast.arg):
                names.setdefault(n.arg, "v%d" % len(names))
            elif isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store):
                names.setdefault(n.id, "v%d" % len(names))
    for function in versions:
        append_text(rename(function, names), out)
    return hashlib.sha256("".join(out).encode("utf-8", "surrogatepass")).hexdigest()


def rename(node, names):
    """Returns a copy of a tree with other names of functions, parameters and variables."""
    if isinstance(node, list):
        return [rename(n, names) for n in node]
    if not isinstance(node, ast.AST):
        return node
    fields = {f: rename(getattr(node, f, None), names) for f in node._fields}
    for f in ("id", "arg", "name"):
        if f in fields and not isinstance(node, ast.keyword) and isinstance(fields[f], str):
            fields[f] = names.get(fields[f], fields[f])
    return type(node)(**fields)


def definitions(tree):
    """Yields (qualified name, node) of all functions and classes: names joined by dots, with #2, #3... for repeated
    definitions."""
    taken = set()

    def walk(node, prefix):
        for _, child in children(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                unique, n = prefix + child.name, 2
                while unique in taken:
                    unique, n = "%s%s#%d" % (prefix, child.name, n), n + 1
                taken.add(unique)
                yield unique, child
                yield from walk(child, unique + ".")
            elif isinstance(child, (ast.stmt, ast.excepthandler)) or hasattr(child, "body"):
                yield from walk(child, prefix)

    return walk(tree, "")


def functions(tree):
    return {name: node for name, node in definitions(tree) if not isinstance(node, ast.ClassDef)}
