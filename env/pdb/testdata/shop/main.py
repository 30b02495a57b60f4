"""Adds up a cart."""
import sys

from pkg.prices import Price, total


def run(names):
    prices = []
    for name in names:
        prices.append(Price(name, len(name)))

    # the sum
    result = total(prices)
    print("total is", result)
    return result


if __name__ == "__main__":
    run(sys.argv[1:] or ["apple", "fig"])
