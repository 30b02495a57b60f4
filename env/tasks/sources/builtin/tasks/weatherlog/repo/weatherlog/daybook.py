"""The daybook answers questions about a whole log."""

from . import figures
from .cleaning import of_day, plausible, readings


class Daybook:
    """All plausible readings of one log."""

    def __init__(self, lines):
        self._readings = plausible(readings(lines))

    def day(self, day):
        """Return mean temperature and rain of one day as a dict."""
        items = of_day(self._readings, day)
        return {
            "day": day,
            "readings": len(items),
            "mean": figures.mean_temperature(items),
            "rain": figures.rainfall(items),
        }

    def week(self, days):
        """Return the summaries of several days."""
        return [self.day(day) for day in days]

    def record(self):
        """Return ``(day, degrees)`` of the warmest reading, or None."""
        top = figures.warmest(self._readings)
        return (top.day, top.celsius) if top else None
