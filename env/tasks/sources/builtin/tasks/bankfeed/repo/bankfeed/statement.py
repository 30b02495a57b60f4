"""Statements: one booking per line, fields set apart by semicolons."""

from collections import namedtuple

from .amounts import parse_amount

Booking = namedtuple("Booking", "day payee amount")


class BadStatement(ValueError):
    """A line does not look like a booking."""


def read_statement(text):
    """Return the bookings of a statement in the order they stand there."""
    bookings = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("*"):
            continue
        fields = line.split(";")
        if len(fields) != 3:
            raise BadStatement("line {}: want day;payee;amount".format(number))
        day, payee, amount = (field.strip() for field in fields)
        bookings.append(Booking(day, payee, parse_amount(amount)))
    return bookings
