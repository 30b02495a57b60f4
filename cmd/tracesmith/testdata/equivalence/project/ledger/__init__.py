"""Accounts and what moves between them."""
from ledger.book import Book

__all__ = ["Book"]
