import pytest

from rulefile import RuleError, parse, render


def failure(text):
    with pytest.raises(RuleError) as caught:
        parse(text)
    return caught.value


def test_numbers_and_names():
    assert parse("limit = 40\nfloor = limit\n") == {"limit": 40, "floor": "limit"}


def test_comments_and_blank_lines():
    assert parse("# sizes\n\nwidth = 7  # cm\n") == {"width": 7}


def test_empty_file():
    assert parse("") == {}


def test_mistake_on_the_first_line():
    error = failure("limit : 40")
    assert str(error) == "line 1, column 7: expected ="
    assert render("limit : 40", error) == "limit : 40\n      ^\nexpected ="


def test_rule_set_twice_names_the_rule():
    assert failure("a = 1\na = 2\n").message == "a is set twice"


def test_line_number_of_a_later_mistake():
    assert failure("a = 1\nb = 2\nc = =\n").token.line == 3


def test_mistake_on_a_later_line():
    text = "width = 7\nheight = 12 13\n"
    assert str(failure(text)) == "line 2, column 13: expected the end of the line"


def test_caret_below_a_later_mistake():
    text = "width = 7\nwidth = 9\n"
    assert render(text, failure(text)) == "width = 9\n^^^^^\nwidth is set twice"
