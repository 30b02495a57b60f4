"""One line of the station's log."""

from collections import namedtuple

Reading = namedtuple("Reading", "day hour celsius millimetres")


class BadLine(ValueError):
    """The line is not a reading."""


def parse_line(line):
    """Parse ``2024-05-06 14 21.5 0.2`` into a Reading."""
    fields = line.split()
    if len(fields) != 4:
        raise BadLine("want four fields: {!r}".format(line))
    day, hour, celsius, millimetres = fields
    try:
        return Reading(day, int(hour), float(celsius), float(millimetres))
    except ValueError:
        raise BadLine("not a number in {!r}".format(line)) from None
