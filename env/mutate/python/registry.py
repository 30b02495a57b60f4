"""Registry of the mutation operators. An operator gets one syntax node and yields the changes that it can make
there."""
OPERATORS = {}


class Operator:
    def __init__(self, ident, family, title, symptom, kinds, find):
        self.id, self.family, self.title, self.symptom, self.kinds, self.find = ident, family, title, symptom, kinds, find


def operator(ident, family, title, symptom, *kinds):
    """Registers the decorated function find(src, node, scope), which yields Changes, for nodes of these ast classes.
    The symptom is what a user of the mutated program notices."""
    def register(find):
        if ident in OPERATORS:
            raise ValueError("operator %s is registered twice" % ident)
        OPERATORS[ident] = Operator(ident, family, title, symptom, kinds, find)
        return find
    return register


class Change:
    """One change, described twice: edits are (begin, end, new bytes) in the file, swaps are (old node, new node) in the
    syntax tree. The edited file must parse to the tree with the swaps. obvious says that a reader notices the change
    without understanding the code, or that hardly anybody would write it."""

    def __init__(self, edits, swaps, obvious=False):
        self.edits, self.swaps, self.obvious = edits, swaps, obvious
