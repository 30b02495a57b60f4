import pytest

from intake import Form, parse_spec

SHIRT = """
name text
age number 0 120
size choice S M L
"""

VISIT = """
age number 0 120
pulse number 30 220
ward choice north south
"""


def test_names_in_order():
    assert Form(SHIRT).names() == ["name", "age", "size"]


def test_number_needs_a_range():
    with pytest.raises(ValueError):
        parse_spec("age number 0")


def test_kind_nobody_knows():
    with pytest.raises(ValueError):
        parse_spec("age colour")


def test_answers_without_problems():
    assert Form(SHIRT).accepts({"name": "Ada", "age": "36", "size": "m"})


def test_missing_and_unknown_answers():
    assert Form(SHIRT).problems({"name": "Ada", "age": "36", "shoe": "41"}) == [
        "size: missing",
        "shoe: not on the form",
    ]


def test_number_out_of_range():
    assert Form(SHIRT).problems({"name": "Ada", "age": "130", "size": "L"}) == ["age: cannot be '130'"]


def test_patient_without_problems():
    assert Form(VISIT).problems({"age": "7", "pulse": "95", "ward": "north"}) == []


def test_age_nobody_reaches():
    assert Form(VISIT).problems({"age": "150", "pulse": "70", "ward": "South"}) == ["age: cannot be '150'"]
