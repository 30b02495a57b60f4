"""Monthly spending per category."""

from collections import OrderedDict

from .amounts import ZERO, format_amount
from .categories import Categories


class Budget:
    """Adds up bookings per category."""

    def __init__(self, rules):
        self._categories = Categories(rules)
        self._sums = {}

    def add(self, bookings):
        """Count bookings in."""
        for booking in bookings:
            category = self._categories.of(booking.payee)
            self._sums[category] = self._sums.get(category, ZERO) + booking.amount

    def totals(self):
        """Return ``{category: sum}`` in alphabetical order."""
        return OrderedDict(sorted(self._sums.items()))

    def balance(self):
        """Return the sum of everything."""
        return sum(self._sums.values(), ZERO)

    def lines(self):
        """Return the totals as text."""
        return ["{}: {}".format(name, format_amount(total)) for name, total in self.totals().items()]
