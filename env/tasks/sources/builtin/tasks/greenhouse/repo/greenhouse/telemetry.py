"""Decode what the sensors send: ``zone:temperature:humidity``."""

from collections import namedtuple

Sample = namedtuple("Sample", "zone temperature humidity")


def decode(frame):
    """Return the samples of one frame; samples are set apart by commas."""
    samples = []
    for part in frame.split(","):
        part = part.strip()
        if not part:
            continue
        try:
            zone, temperature, humidity = part.split(":")
            samples.append(Sample(int(zone), float(temperature), float(humidity)))
        except ValueError:
            raise ValueError("cannot decode {!r}".format(part)) from None
    return samples
