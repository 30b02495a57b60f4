"""Sort out what cannot have been measured."""

from .records import parse_line

COLDEST, HOTTEST = -60.0, 60.0


def readings(lines):
    """Yield a Reading per line, passing over blanks and comments."""
    for line in lines:
        line = line.split("#", 1)[0].strip()
        if line:
            yield parse_line(line)


def plausible(items):
    """Return the readings a working station can produce."""
    return (
        item for item in items
        if COLDEST <= item.celsius <= HOTTEST and item.millimetres >= 0
    )


def of_day(items, day):
    """Return the readings of one day, earliest first."""
    return sorted((item for item in items if item.day == day), key=lambda item: item.hour)
