"""The registry of operators: an operator is a generator that gets one node and yields changes."""
OPERATORS = {}


class Operator:
    def __init__(self, ident, family, title, symptom, kinds, find):
        self.id, self.family, self.title, self.symptom, self.kinds, self.find = ident, family, title, symptom, kinds, find


def operator(ident, family, title, symptom, *kinds):
    """Registers find(src, node, scope), which yields Changes, for nodes of these kinds. The symptom says how a user of
    the program notices the bug."""
    def register(find):
        if ident in OPERATORS:
            raise ValueError("operator %s is registered twice" % ident)
        OPERATORS[ident] = Operator(ident, family, title, symptom, kinds, find)
        return find
    return register


class Change:
    """A change of the text as edits (begin, end, new bytes), and the same change of the tree as swaps (old node, new node)."""

    def __init__(self, edits, swaps):
        self.edits, self.swaps = edits, swaps
