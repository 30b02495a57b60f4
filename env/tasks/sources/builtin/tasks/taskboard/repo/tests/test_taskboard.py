import pytest

from taskboard import Board, select


def titles(cards):
    return [card.title for card in cards]


def test_cards_are_numbered():
    board = Board()
    assert [board.add("paint").number, board.add("sand").number] == [1, 2]


def test_move_to_an_unknown_column():
    board = Board()
    board.add("paint")
    with pytest.raises(ValueError):
        board.move(1, "attic")


def test_select_by_owner_and_column():
    board = Board()
    board.add("paint", owner="Ada")
    board.add("sand", owner="Ada")
    board.add("varnish", owner="Bo")
    board.move(2, "doing")
    assert titles(select(board, "owner:ada column:doing")) == ["sand"]


def test_labels_given_at_creation():
    board = Board()
    board.add("paint", labels=["outdoor"])
    board.add("sand", labels=["indoor"])
    assert titles(select(board, "label:indoor")) == ["sand"]


def test_select_by_label():
    board = Board()
    board.add("paint")
    board.add("sand")
    board.add("varnish")
    board.tag(2, "Urgent")
    assert titles(select(board, "label:urgent")) == ["sand"]


def test_label_twice():
    board = Board()
    board.add("paint", labels=["outdoor"])
    board.tag(1, "outdoor", "wet")
    assert board.card(1).labels == ["outdoor", "wet"]


def test_query_with_an_unknown_word():
    with pytest.raises(ValueError):
        select(Board(), "colour:red")
