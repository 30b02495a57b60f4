import pytest

from agenda import Calendar, parse_stamp, read_feed, format_stamp

OFFICE = ["2024-05-06T14:30+02:00 | 60 | review", "2024-05-06T09:00+02:00 | 30 | stand-up"]
ABROAD = ["2024-05-06T09:00-04:00 | 45 | call with Boston"]
SERVER = ["2024-05-06T12:45Z | 20 | backup window"]


def calendar(*feeds):
    result = Calendar()
    for feed in feeds:
        result.add(read_feed(feed))
    return result


@pytest.mark.parametrize("text, expected", [
    ("2024-05-06T14:30+02:00", "2024-05-06 12:30"),
    ("2024-05-06T14:30-05:30", "2024-05-06 20:00"),
    ("2024-05-06T14:30Z", "2024-05-06 14:30"),
])
def test_stamps_are_shown_in_universal_time(text, expected):
    assert format_stamp(parse_stamp(text)) == expected


def test_text_that_is_no_stamp():
    with pytest.raises(ValueError):
        parse_stamp("6 May, half past two")


def test_agenda_of_one_feed_is_sorted():
    assert calendar(OFFICE).lines() == ["2024-05-06 07:00 stand-up", "2024-05-06 12:30 review"]


def test_clash_between_two_offices():
    assert calendar(OFFICE, ABROAD).clashes() == [("review", "call with Boston")]


def test_agenda_of_all_feeds():
    assert calendar(OFFICE, ABROAD, SERVER).lines() == [
        "2024-05-06 07:00 stand-up",
        "2024-05-06 12:30 review",
        "2024-05-06 12:45 backup window",
        "2024-05-06 13:00 call with Boston",
    ]


def test_clash_with_the_server():
    assert ("review", "backup window") in calendar(OFFICE, SERVER).clashes()
