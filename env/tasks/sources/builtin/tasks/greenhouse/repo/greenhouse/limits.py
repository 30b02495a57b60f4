"""What each zone may reach before somebody has to look."""

import json
from collections import namedtuple

Range = namedtuple("Range", "low high")

HOUSE = Range(10.0, 35.0)


class Limits:
    """Temperature ranges per zone, with one for the rest of the house."""

    def __init__(self, zones, house=HOUSE):
        self._zones = dict(zones)
        self._house = house

    def of(self, zone):
        """Return the range that holds for *zone*."""
        return self._zones.get(zone, self._house)

    def __len__(self):
        return len(self._zones)


def load_limits(text):
    """Read limits from JSON such as ``{"zones": {"3": [18, 24]}}``."""
    document = json.loads(text)
    zones = {}
    for zone, (low, high) in document.get("zones", {}).items():
        if low >= high:
            raise ValueError("zone {}: {} is not below {}".format(zone, low, high))
        zones[zone] = Range(float(low), float(high))
    house = Range(*document["house"]) if "house" in document else HOUSE
    return Limits(zones, house)
