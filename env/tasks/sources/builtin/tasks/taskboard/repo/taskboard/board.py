"""The board: creates cards and moves them."""

from .cards import Card

COLUMNS = ("todo", "doing", "review", "done")


class Board:
    """Cards in the columns todo, doing, review and done."""

    def __init__(self):
        self._cards = {}
        self._last = 0

    def add(self, title, owner=None, **details):
        """Create a card and return it."""
        self._last += 1
        card = Card(self._last, title, owner=owner, **details)
        self._cards[card.number] = card
        return card

    def card(self, number):
        """Return the card with *number*."""
        try:
            return self._cards[number]
        except KeyError:
            raise KeyError("no card {}".format(number)) from None

    def cards(self):
        """Return all cards in the order of their numbers."""
        return [self._cards[number] for number in sorted(self._cards)]

    def tag(self, number, *labels):
        """Add labels to a card."""
        card = self.card(number)
        for label in labels:
            card.add_label(label)

    def move(self, number, column):
        """Put a card into *column*."""
        if column not in COLUMNS:
            raise ValueError("no column {!r}".format(column))
        self.card(number).column = column
