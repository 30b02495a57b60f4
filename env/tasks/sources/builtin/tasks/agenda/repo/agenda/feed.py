"""Feeds: one entry per line, ``start | minutes | title``."""

from collections import namedtuple
from datetime import timedelta

from .stamps import parse_stamp


class Entry(namedtuple("Entry", "start minutes title")):
    """Something that takes time."""

    __slots__ = ()

    @property
    def end(self):
        """The moment the entry is over."""
        return self.start + timedelta(minutes=self.minutes)


def read_feed(lines):
    """Return the entries of a feed in the order they stand there."""
    entries = []
    for line in lines:
        if not line.strip():
            continue
        start, minutes, title = (field.strip() for field in line.split("|", 2))
        entries.append(Entry(parse_stamp(start), int(minutes), title))
    return entries
