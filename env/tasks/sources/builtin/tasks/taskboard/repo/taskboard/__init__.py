"""A small task board: cards in columns, with labels and owners."""

from .board import Board
from .cards import Card
from .query import select

__all__ = ["Board", "Card", "select"]
