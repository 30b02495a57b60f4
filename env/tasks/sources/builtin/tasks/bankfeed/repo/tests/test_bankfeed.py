from decimal import Decimal

import pytest

from bankfeed import Budget, read_statement

RULES = [("rent", "housing"), ("grocer", "food"), ("bakery", "food"), ("salary", "income")]


def budget(text):
    result = Budget(RULES)
    result.add(read_statement(text))
    return result


def test_debits_end_with_a_minus():
    bookings = read_statement("2024-05-02;Corner Grocer;48.10-\n2024-05-03;Refund;12.00")
    assert [booking.amount for booking in bookings] == [Decimal("-48.10"), Decimal("12.00")]


def test_nothing_booked():
    bookings = read_statement("2024-05-02;Card blocked;-\n2024-05-03;Notice;")
    assert [booking.amount for booking in bookings] == [0, 0]


def test_remarks_are_passed_over():
    assert read_statement("* page 1\n\n2024-05-02;Bakery Sol;3.20-") != []


def test_line_with_a_field_missing():
    with pytest.raises(ValueError):
        read_statement("2024-05-02;Bakery Sol")


def test_totals_per_category():
    totals = budget("2024-05-02;Corner Grocer;48.10-\n2024-05-03;Bakery Sol;3.20-").totals()
    assert totals == {"food": Decimal("-51.30")}


def test_balance_of_a_month():
    month = budget(
        "2024-05-01;Salary May;2,450.00\n"
        "2024-05-02;Rent May;980.00-\n"
        "2024-05-04;Corner Grocer;61.35-\n"
    )
    assert month.balance() == Decimal("1408.65")


def test_lines():
    month = budget("2024-05-01;Salary May;12,000.00\n2024-05-02;Rent;900.00-")
    assert month.lines() == ["housing: -900.00", "income: 12,000.00"]
