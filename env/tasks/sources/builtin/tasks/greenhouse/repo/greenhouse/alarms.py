"""Raise and clear alarms as samples come in."""

from collections import OrderedDict

from .telemetry import decode


class Watch:
    """Knows which zones are out of range at present."""

    def __init__(self, limits):
        self._limits = limits
        self._open = OrderedDict()

    def feed(self, frame):
        """Take one frame in; return the alarms it raised or cleared."""
        events = []
        for sample in decode(frame):
            problem = self._judge(sample)
            before = self._open.get(sample.zone)
            if problem == before:
                continue
            if problem is None:
                del self._open[sample.zone]
                events.append("zone {} is well again".format(sample.zone))
            else:
                self._open[sample.zone] = problem
                events.append("zone {} is too {}".format(sample.zone, problem))
        return events

    def open_alarms(self):
        """Return ``{zone: problem}``, longest standing first."""
        return OrderedDict(self._open)

    def _judge(self, sample):
        allowed = self._limits.of(sample.zone)
        if sample.temperature < allowed.low:
            return "cold"
        if sample.temperature > allowed.high:
            return "hot"
        return None
