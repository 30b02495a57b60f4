"""Plan delivery rounds over a network of roads."""

from .dispatch import Dispatcher
from .network import Network
from .planner import NoRoute, Planner

__all__ = ["Dispatcher", "Network", "NoRoute", "Planner"]
