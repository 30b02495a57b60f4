"""Keep count of goods on shelves and explain how the counts changed."""

from .history import History
from .report import movement_report
from .store import OutOfStock, Stockroom

__all__ = ["History", "OutOfStock", "Stockroom", "movement_report"]
