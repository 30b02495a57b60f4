"""Ends in an uncaught exception two calls deep."""
from ledger import Book


def deep(book):
    local = {"seen": {"b", "a"}}
    return book.accounts["nowhere"], local


def main():
    book = Book(["cash"])
    print("before the crash", book.accounts["cash"])
    deep(book)


main()
