"""Quickest routes, remembered for as long as the network stays the same."""

import heapq


class NoRoute(Exception):
    """There is no way between the two places."""


class Planner:
    """Finds quickest routes in a network."""

    def __init__(self, network):
        self._network = network
        self._routes = {}
        self._revision = network.revision

    def route(self, start, goal):
        """Return ``(minutes, [places])`` of the quickest way."""
        if self._revision != self._network.revision:
            self._routes.clear()
            self._revision = self._network.revision
        key = (start, goal)
        if key not in self._routes:
            self._routes[key] = self._search(start, goal)
        return self._routes[key]

    def _search(self, start, goal):
        queue = [(0, [start])]
        settled = set()
        while queue:
            minutes, places = heapq.heappop(queue)
            here = places[-1]
            if here == goal:
                return minutes, places
            if here in settled:
                continue
            settled.add(here)
            for place, cost in self._network.neighbours(here):
                if place not in settled:
                    heapq.heappush(queue, (minutes + cost, places + [place]))
        raise NoRoute("{} cannot be reached from {}".format(goal, start))
