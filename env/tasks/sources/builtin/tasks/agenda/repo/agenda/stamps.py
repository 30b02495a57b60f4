"""Time stamps as calendar feeds write them."""

import re
from datetime import datetime, timedelta, timezone

_STAMP = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d)(Z|[+-]\d\d:\d\d)$")


def parse_stamp(text):
    """Return the moment written as ``2024-05-06T14:30+02:00`` or ``...Z``."""
    match = _STAMP.match(text.strip())
    if match is None:
        raise ValueError("not a time stamp: {!r}".format(text))
    local, zone = match.groups()
    moment = datetime.strptime(local, "%Y-%m-%dT%H:%M")
    if zone == "Z":
        return moment
    return moment.replace(tzinfo=_offset(zone)).astimezone(timezone.utc)


def _offset(zone):
    sign = -1 if zone[0] == "-" else 1
    hours, minutes = int(zone[1:3]), int(zone[4:6])
    return timezone(sign * timedelta(hours=hours, minutes=minutes))


def format_stamp(moment):
    """Return *moment* in universal time, to the minute."""
    return moment.strftime("%Y-%m-%d %H:%M")
