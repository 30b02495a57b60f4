import unittest

from pkg.prices import Price, total


def test_total_pytest():
    print("captured words")
    prices = [Price("a", 1), Price("b", 2)]
    assert total(prices) == 4


class TotalCase(unittest.TestCase):
    def test_total(self):
        self.assertEqual(total([Price("a", 1)]), 1)
