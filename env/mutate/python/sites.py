"""Lists the sites of a file and applies changes at some of them.

Each change is made twice: in the text and in the syntax tree. It is accepted only if the changed text parses to the
changed tree, and if the changed tree differs from the original.
"""
import ast
import hashlib

import ops  # noqa: F401  registers the operators
from patch import unified
from registry import OPERATORS
from scope import dotted_name, mutable_nodes
from source import Refused, parse
from trees import clone, fingerprint, functions, rebuild, same, shape_hash

MAX_SITES = 20000  # of one file
OBVIOUS = {"d1", "d2", "d3", "d4"}  # operators that remove a statement


def assigns_itself(change):
    """Returns whether a change results in `x = x`."""
    return any(isinstance(new, ast.AST) and isinstance(old._parent, ast.Assign) and len(old._parent.targets) == 1 and
               dotted_name(old._parent.targets[0]) == dotted_name(new) != "" for old, new in change.swaps)


class Site:
    def __init__(self, src, op, change, scope):
        self.src, self.op, self.change, self.func = src, op, change, scope.name
        self.edits = sorted(change.edits, key=lambda e: e[:2])
        self.start, self.end = self.edits[0][0], max(e[1] for e in self.edits)
        key = repr((src.path, src.digest, op.id, self.edits)).encode("utf-8", "surrogatepass")
        self.id = hashlib.sha256(key).hexdigest()[:16]

    def record(self):
        src = self.src
        last = self.end - 1 if self.end > self.start else self.end
        return {"id": self.id, "file": src.path, "line": src.line_of(self.start), "end_line": src.line_of(last),
                "start": self.start, "end": self.end, "func": self.func, "operator": self.op.id, "family": self.op.family,
                "note": note(src, self.edits), "obvious": self.change.obvious or self.op.id in OBVIOUS or assigns_itself(self.change)}


def note(src, edits):
    """Returns the old and new text of the first two edits in one short line."""
    parts = []
    for begin, end, new in edits[:2]:
        old = src.data[begin:end]
        parts.append("%s -> %s" % (brief(old), brief(new)))
    return "; ".join(parts)


def brief(text):
    words = " ".join(text.decode("utf-8", "replace").split())
    return "`%s`" % (words if len(words) <= 60 else words[:57] + "...")


def sites(src, types, wanted=None):
    """Returns all sites of a file in source order. With wanted, returns only sites of these operators."""
    found, seen, by_kind = [], set(), {}
    for op in OPERATORS.values():
        if wanted is None or op.id in wanted:
            for kind in op.kinds:
                by_kind.setdefault(kind, []).append(op)
    for node, scope in mutable_nodes(src, types):
        for op in by_kind.get(type(node), ()):
            for change in op.find(src, node, scope):
                site = Site(src, op, change, scope)
                key = tuple(site.edits)
                if key not in seen:
                    seen.add(key)
                    found.append(site)
        if len(found) > MAX_SITES:
            raise Refused("has more than %d sites" % MAX_SITES)
    return found


def mutate(src, chosen):
    """Returns the file's bytes with the changes of the chosen sites, its tree and the edits."""
    swaps = {}
    last = -1
    for site in sorted(chosen, key=lambda s: s.start):
        if site.start < last:
            raise Refused("two of the sites overlap")
        last = max(site.end, site.start + 1)
        for old, new in site.change.swaps:
            if id(old) in swaps:
                raise Refused("two of the sites change the same expression")
            swaps[id(old)] = new
    edits = [e for site in chosen for e in site.edits]
    data = src.splice(edits)
    got = parse(data.decode("utf-8"))
    if not Check(src, edits, swaps).block(src.tree.body, got.body):
        raise Refused("the change changes nothing")
    try:
        return src.encode(data), got, edits
    except UnicodeError as e:
        raise Refused("cannot be written as %s: %s" % (src.encoding, e))


class Check:
    """Compares the parsed text with the changed tree, statement by statement. For statements that no edit touches, it
    compares only the class of the node. Touched statements must also compile, because code such as a continue outside a
    loop parses but does not compile."""

    def __init__(self, src, edits, swaps):
        self.src, self.edits, self.swaps = src, edits, swaps

    def block(self, old, got):
        """Compares a block. Returns whether it differs from the original."""
        pairs = []
        for stmt in old:
            begin, end = self.src.start(stmt), self.src.end(stmt)
            inside = [e for e in self.edits if e[0] <= end and e[1] >= begin]
            if not inside:
                pairs.append((stmt, stmt, False))
            elif isinstance(stmt, ast.ClassDef) and id(stmt) not in self.swaps and \
                    all(e[0] >= self.src.start(stmt.body[0]) and e[1] <= end for e in inside):
                pairs.append((stmt, None, True))
            else:
                new = rebuild(stmt, self.swaps)
                pairs.extend((stmt, n, True) for n in (new if isinstance(new, list) else [new]))
        if len(pairs) != len(got):
            raise Refused("the text does not parse to the intended change")
        changed = len(got) != len(old)
        for (stmt, new, touched), real in zip(pairs, got):
            changed = self.statement(stmt, new, touched, real) or changed
        return changed

    def statement(self, stmt, new, touched, real):
        if new is None:
            new = rebuild(clone(stmt, body=[]), self.swaps)
            if type(real) is not type(stmt) or not same(new, clone(real, body=[])):
                raise Refused("the text does not parse to the intended change")
            return self.block(stmt.body, real.body)
        if type(new) is not type(real) or touched and not same(new, real):
            raise Refused("the text does not parse to the intended change")
        if not touched or same(stmt, real):
            return False
        check_compiles(real, self.src.path)
        return True


def check_compiles(stmt, path):
    try:
        compile(ast.Module(body=[stmt], type_ignores=[]), path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as e:
        raise Refused("does not compile: %s" % e)


def diff_of_file(src, data, tree, edits):
    """Returns the diff of a file, and the fingerprints of its changed functions before and after the change."""
    old, new = functions(src.tree), functions(tree)
    funcs = []
    for name in sorted(set(old) | set(new)):
        node = old.get(name)
        if node and name in new and not any(a <= src.end(node) and b >= src.start(node) for a, b, _ in edits):
            continue
        before = fingerprint(node) if node else ""
        after = fingerprint(new[name]) if name in new else ""
        if before != after:
            funcs.append({"file": src.path, "name": name, "line": node.lineno if node else 0,
                          "end_line": node.end_lineno if node else 0, "before": before, "after": after,
                          "shape": shape_hash(node, new[name]) if node and name in new else ""})
    if not funcs:  # module or class level
        if fingerprint(src.tree) == fingerprint(tree):
            raise Refused("the change changes nothing that runs")
        funcs.append({"file": src.path, "name": "<module>", "line": 1, "end_line": len(src.lines),
                      "before": fingerprint(src.tree), "after": fingerprint(tree)})
    return {"patch": unified(src.path, src.raw, data), "funcs": funcs}
