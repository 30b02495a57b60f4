"""Roads between places, and the delays reported on them."""


class Network:
    """An undirected road network; lengths and delays are in minutes."""

    def __init__(self):
        self.revision = 0
        self._minutes = {}
        self._delays = {}

    def connect(self, a, b, minutes):
        """Add a road, or change how long it takes."""
        self._minutes[frozenset((a, b))] = minutes
        self._touch()

    def close(self, a, b):
        """Take a road out of the network."""
        road = self._road(a, b)
        del self._minutes[road]
        self._delays.pop(road, None)
        self._touch()

    def report_delay(self, a, b, minutes):
        """Set how much longer the road takes at present."""
        self._delays[self._road(a, b)] = minutes

    def clear_delays(self):
        """Forget all reported delays."""
        self._delays.clear()
        self._touch()

    def neighbours(self, place):
        """Yield ``(other place, minutes)`` for every road at *place*."""
        for road, minutes in self._minutes.items():
            if place in road:
                (other,) = road - {place}
                yield other, minutes + self._delays.get(road, 0)

    def _road(self, a, b):
        road = frozenset((a, b))
        if road not in self._minutes:
            raise KeyError("no road between {} and {}".format(a, b))
        return road

    def _touch(self):
        self.revision += 1
