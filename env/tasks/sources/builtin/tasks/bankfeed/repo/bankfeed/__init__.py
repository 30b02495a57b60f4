"""Read bank statements and add up what was spent on what."""

from .budget import Budget
from .statement import read_statement

__all__ = ["Budget", "read_statement"]
