"""Figures over readings."""


def mean_temperature(items):
    """Return the mean in degrees, or None without readings."""
    total, count = 0.0, 0
    for item in items:
        total += item.celsius
        count += 1
    return round(total / count, 1) if count else None


def rainfall(items):
    """Return the sum in millimetres."""
    return round(sum(item.millimetres for item in items), 1)


def warmest(items):
    """Return the reading with the highest temperature, or None."""
    return max(items, key=lambda item: item.celsius, default=None)
