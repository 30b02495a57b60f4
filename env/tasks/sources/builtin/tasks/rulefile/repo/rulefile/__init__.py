"""Read files of rules such as ``limit = 40`` and point at mistakes."""

from .diagnostics import render
from .parser import RuleError, parse

__all__ = ["RuleError", "parse", "render"]
