from decimal import Decimal

import pytest

from invoicing import Invoice, TaxTable, cents, to_amount


def invoice(*lines):
    result = Invoice(TaxTable(standard=21, reduced=7.5, books=5.5, none=0))
    for line in lines:
        result.add(*line)
    return result


def test_cents_rounds_halves_up():
    assert cents(Decimal("0.125")) == Decimal("0.13")
    assert cents(Decimal("0.135")) == Decimal("0.14")


def test_amounts_are_never_floats():
    with pytest.raises(TypeError):
        to_amount(1.5)


def test_rate_out_of_range():
    with pytest.raises(ValueError):
        TaxTable(standard=210)


def test_net_sum():
    assert invoice(("desk", 2, "149.95", "standard"), ("map", 1, "8.00", "books")).net() == Decimal("307.90")


def test_tax_class_without_tax():
    assert invoice(("stamp", 10, "0.85", "none")).total() == Decimal("8.50")


def test_standard_tax():
    assert invoice(("desk", 1, "100.00", "standard")).total() == Decimal("121.00")


def test_unknown_tax_class():
    with pytest.raises(KeyError):
        invoice(("desk", 1, "100.00", "luxury"))


def test_total_with_reduced_tax():
    assert invoice(("tea", 3, "4.60", "reduced")).total() == Decimal("14.84")


def test_invoice_as_text():
    assert invoice(("atlas", 1, "31.00", "books"), ("desk", 1, "80.00", "standard")).lines() == [
        "1 x atlas @ 31.00",
        "1 x desk @ 80.00",
        "tax books: 1.71",
        "tax standard: 16.80",
        "total: 129.51",
    ]
