"""Merge calendar feeds into one agenda."""

from .calendar import Calendar
from .feed import Entry, read_feed
from .stamps import format_stamp, parse_stamp

__all__ = ["Calendar", "Entry", "format_stamp", "parse_stamp", "read_feed"]
