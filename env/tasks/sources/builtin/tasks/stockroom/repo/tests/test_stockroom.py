import pytest

from stockroom import History, OutOfStock, Stockroom, movement_report


@pytest.fixture
def room():
    room = Stockroom()
    room.receive("bolt", "A1", 40)
    room.receive("bolt", "B2", 10)
    room.receive("nut", "A1", 25)
    return room


def test_on_hand_adds_up_all_shelves(room):
    assert room.on_hand("bolt") == 50
    assert room.on_hand("washer") == 0


def test_pick_more_than_held(room):
    with pytest.raises(OutOfStock):
        room.pick("nut", "A1", 26)
    assert room.on_hand("nut") == 25


def test_move_keeps_the_total(room):
    room.move("bolt", "A1", "C3", 15)
    assert room.levels()["bolt"] == {"A1": 25, "B2": 10, "C3": 15}


def test_report_shows_a_new_article(room):
    history = History(room)
    history.take("morning")
    room.receive("washer", "D4", 7)
    history.take("evening")
    assert movement_report(history, "morning", "evening") == ["washer     D4   +7"]


def test_report_shows_what_was_picked(room):
    history = History(room)
    history.take("morning")
    room.pick("bolt", "A1", 5)
    room.receive("nut", "A1", 3)
    history.take("evening")
    assert movement_report(history, "morning", "evening") == [
        "bolt       A1   -5",
        "nut        A1   +3",
    ]


def test_labels_are_unique(room):
    history = History(room)
    history.take("morning")
    with pytest.raises(ValueError):
        history.take("morning")
    assert history.labels() == ["morning"]


def test_quiet_day(room):
    history = History(room)
    history.take("morning")
    history.take("evening")
    assert movement_report(history, "morning", "evening") == ["no movement"]
