"""Turn a list of stops into a timetable."""

from datetime import timedelta


class Dispatcher:
    """Writes timetables for rounds that begin at a depot."""

    def __init__(self, planner, depot, unloading=5):
        self._planner = planner
        self._depot = depot
        self._unloading = timedelta(minutes=unloading)

    def timetable(self, departure, stops):
        """Return ``[(stop, arrival)]`` for a round in the given order."""
        entries = []
        here, now = self._depot, departure
        for stop in stops:
            minutes, _ = self._planner.route(here, stop)
            now += timedelta(minutes=minutes)
            entries.append((stop, now))
            now += self._unloading
            here = stop
        return entries

    def arrival(self, departure, stops, stop):
        """Return when the round reaches *stop*."""
        for name, moment in self.timetable(departure, stops):
            if name == stop:
                return moment
        raise KeyError("{} is not on the round".format(stop))
