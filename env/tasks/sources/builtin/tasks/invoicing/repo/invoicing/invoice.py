"""Invoices: lines, a total per tax class, and a grand total."""

from collections import OrderedDict, namedtuple
from decimal import Decimal

from .money import cents, to_amount

Line = namedtuple("Line", "text quantity price tax_class")


class Invoice:
    """An invoice in the making."""

    def __init__(self, table):
        self._table = table
        self._lines = []

    def add(self, text, quantity, price, tax_class):
        """Add *quantity* pieces at a net *price* each."""
        if quantity < 1:
            raise ValueError("quantity must be at least 1")
        self._table.rate(tax_class)
        self._lines.append(Line(text, quantity, to_amount(price), tax_class))

    def net(self):
        """Return the sum without tax."""
        return cents(sum((line.quantity * line.price for line in self._lines), Decimal(0)))

    def taxes(self):
        """Return ``{tax class: tax}``; tax is taken on the sum of a class."""
        sums = OrderedDict()
        for line in self._lines:
            sums[line.tax_class] = sums.get(line.tax_class, Decimal(0)) + line.quantity * line.price
        return OrderedDict((name, self._table.tax(net, name)) for name, net in sums.items())

    def total(self):
        """Return what the customer pays."""
        return self.net() + sum(self.taxes().values(), Decimal(0))

    def lines(self):
        """Return the invoice as text."""
        rows = ["{} x {} @ {}".format(line.quantity, line.text, line.price) for line in self._lines]
        rows.extend("tax {}: {}".format(name, tax) for name, tax in self.taxes().items())
        rows.append("total: {}".format(self.total()))
        return rows
