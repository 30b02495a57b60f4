"""Amounts of money as banks print them."""

from decimal import Decimal, InvalidOperation

ZERO = Decimal("0.00")


def parse_amount(text):
    """Return the amount written in *text*; a trailing minus marks a debit.

    Statements leave the field blank or print a dash where nothing was booked.
    """
    text = text.strip()
    sign = -1 if text.endswith("-") else 1
    digits = text.rstrip("-").strip()
    try:
        return sign * Decimal(digits)
    except InvalidOperation:
        return ZERO


def format_amount(amount):
    """Return *amount* with two digits and thousands set apart."""
    return "{:,.2f}".format(amount)
