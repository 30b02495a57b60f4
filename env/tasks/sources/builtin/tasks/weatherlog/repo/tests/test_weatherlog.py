import pytest

from weatherlog import Daybook, parse_line

LOG = """\
# station 7
2024-05-06 06 9.0 0.0
2024-05-06 14 21.0 0.4
2024-05-07 06 11.5 1.2
2024-05-07 14 999.9 0.0   # sensor fault
2024-05-07 18 16.5 2.0
""".splitlines()


def test_parse_line():
    reading = parse_line("2024-05-06 14 21.5 0.2")
    assert reading.hour == 14
    assert reading.celsius == 21.5


def test_parse_line_refuses_words():
    with pytest.raises(ValueError):
        parse_line("2024-05-06 noon 21.5 0.2")


def test_one_day():
    assert Daybook(LOG).day("2024-05-06") == {
        "day": "2024-05-06", "readings": 2, "mean": 15.0, "rain": 0.4,
    }


def test_faulty_sensor_is_left_out():
    assert Daybook(LOG).day("2024-05-07")["readings"] == 2


def test_day_without_readings():
    assert Daybook(LOG).day("2024-06-01")["mean"] is None


def test_record():
    assert Daybook(LOG).record() == ("2024-05-06", 21.0)


def test_week_lists_every_day():
    summary = Daybook(LOG).week(["2024-05-06", "2024-05-07"])
    assert [entry["readings"] for entry in summary] == [2, 2]
    assert [entry["rain"] for entry in summary] == [0.4, 3.2]


def test_record_after_a_summary():
    book = Daybook(LOG)
    book.day("2024-05-07")
    assert book.record() == ("2024-05-06", 21.0)
