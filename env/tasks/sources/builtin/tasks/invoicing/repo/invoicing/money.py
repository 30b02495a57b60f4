"""Amounts of money. All of them are Decimal."""

from decimal import ROUND_HALF_UP, Decimal

CENT = Decimal("0.01")


def to_amount(value):
    """Return *value*, a text or whole number, as an amount."""
    if isinstance(value, float):
        raise TypeError("write {!r} as text".format(value))
    return Decimal(value)


def cents(amount):
    """Round to the cent, halves up as tax offices want it."""
    return amount.quantize(CENT, rounding=ROUND_HALF_UP)
