"""Remember what the stock looked like at named moments."""


class History:
    """A list of labelled counts of one stockroom."""

    def __init__(self, stockroom):
        self._stockroom = stockroom
        self._counts = {}
        self._order = []

    def take(self, label):
        """Store the present counts under *label*."""
        if label in self._counts:
            raise ValueError("there is already a count called {!r}".format(label))
        self._counts[label] = self._stockroom.levels()
        self._order.append(label)

    def labels(self):
        """Return the labels, oldest first."""
        return list(self._order)

    def count(self, label):
        """Return the counts taken as *label*."""
        try:
            return self._counts[label]
        except KeyError:
            raise KeyError("no count called {!r}".format(label)) from None

    def changes(self, before, after):
        """Return ``{(article, shelf): difference}`` between two counts."""
        old, new = self._flat(before), self._flat(after)
        differences = {}
        for place in set(old) | set(new):
            difference = new.get(place, 0) - old.get(place, 0)
            if difference:
                differences[place] = difference
        return differences

    def _flat(self, label):
        return {
            (article, shelf): pieces
            for article, shelves in self.count(label).items()
            for shelf, pieces in shelves.items()
        }
