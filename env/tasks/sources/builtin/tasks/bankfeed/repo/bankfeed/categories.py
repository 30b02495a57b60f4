"""Guess from the payee what a booking was for."""


class Categories:
    """Words that stand for a category; the first word that fits counts."""

    def __init__(self, rules):
        self._rules = [(word.lower(), category) for word, category in rules]

    def of(self, payee):
        """Return the category of *payee*, ``other`` if no word fits."""
        payee = payee.lower()
        for word, category in self._rules:
            if word in payee:
                return category
        return "other"
