"""Cards, the pieces of work on a board."""


class Card:
    """One piece of work."""

    def __init__(self, number, title, owner=None, labels=[]):
        self.number = number
        self.title = title
        self.owner = owner
        self.labels = labels
        self.column = "todo"

    def add_label(self, label):
        """Add *label* unless the card has it."""
        label = label.strip().lower()
        if not label:
            raise ValueError("a label needs a name")
        if label not in self.labels:
            self.labels.append(label)

    def drop_label(self, label):
        """Take *label* off, if the card has it."""
        if label in self.labels:
            self.labels.remove(label)

    def __repr__(self):
        return "Card({}, {!r})".format(self.number, self.title)
