"""Deliver messages over unreliable lines, with profiles for each line."""

from .delivery import Courier, Undelivered
from .profiles import Profiles, UnknownProfile

__all__ = ["Courier", "Profiles", "Undelivered", "UnknownProfile"]
