"""The stock itself: how many pieces of each article lie on which shelf."""


class OutOfStock(Exception):
    """More pieces were asked for than the shelf holds."""


class Stockroom:
    """Counts pieces per article and shelf."""

    def __init__(self):
        self._levels = {}

    def receive(self, article, shelf, pieces):
        """Put *pieces* of *article* on *shelf*."""
        if pieces <= 0:
            raise ValueError("pieces must be positive")
        shelves = self._levels.setdefault(article, {})
        shelves[shelf] = shelves.get(shelf, 0) + pieces

    def pick(self, article, shelf, pieces):
        """Take *pieces* of *article* off *shelf*."""
        shelves = self._levels.get(article, {})
        held = shelves.get(shelf, 0)
        if pieces > held:
            raise OutOfStock("{} on {}: {} held, {} wanted".format(article, shelf, held, pieces))
        if pieces == held:
            del shelves[shelf]
        else:
            shelves[shelf] = held - pieces

    def move(self, article, source, target, pieces):
        """Carry *pieces* of *article* from one shelf to another."""
        self.pick(article, source, pieces)
        self.receive(article, target, pieces)

    def on_hand(self, article):
        """Return the number of pieces of *article* on all shelves."""
        return sum(self._levels.get(article, {}).values())

    def levels(self):
        """Return the present counts as ``{article: {shelf: pieces}}``."""
        return dict(self._levels)
