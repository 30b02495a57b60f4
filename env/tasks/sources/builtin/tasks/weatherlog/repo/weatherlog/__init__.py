"""Daily summaries of what a weather station has written down."""

from .daybook import Daybook
from .records import Reading, parse_line

__all__ = ["Daybook", "Reading", "parse_line"]
