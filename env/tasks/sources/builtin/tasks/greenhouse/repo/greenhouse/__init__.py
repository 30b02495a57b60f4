"""Watch the climate in the zones of a greenhouse."""

from .alarms import Watch
from .limits import Limits, load_limits
from .telemetry import decode

__all__ = ["Limits", "Watch", "decode", "load_limits"]
