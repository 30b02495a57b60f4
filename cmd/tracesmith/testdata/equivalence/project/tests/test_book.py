import pytest

from ledger import Book


@pytest.fixture
def book(tmp_path):
    (tmp_path / "note").write_text("x")
    return Book(["cash", "bank", "rent"])


def test_move(book):
    book.move("cash", "bank", 30)
    assert book.accounts["bank"].balance == 30


def test_total_stays(book, tmp_path):
    book.move("cash", "bank", 30)
    assert book.total() == 0, "in %s" % tmp_path


def test_tags(book):
    book.move("cash", "bank", 1)
    book.move("cash", "rent", 2)
    book.move("bank", "rent", 3)
    assert sorted(book.tags) == ["bank>rent", "cash>bank", "cash>rent"]


def test_refuses(book):
    with pytest.raises(ValueError):
        book.move("cash", "bank", 0)


@pytest.mark.parametrize("amount", [1, 5])
def test_sign(book, amount):
    book.move("cash", "bank", amount)
    assert book.accounts["cash"].balance == -amount
