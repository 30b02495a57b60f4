class Price:
    """What one thing costs."""

    def __init__(self, name, amount):
        self.name = name
        self.amount = amount

    def __repr__(self):
        return "Price(%s)" % self.name

    @property
    def doubled(self):
        return self.amount * 2


def total(prices):
    result = 0
    for price in prices:
        result += price.amount

    return result
