"""Check filled-in forms against a description of the form."""

from .checks import build_checks
from .form import Form
from .spec import parse_spec

__all__ = ["Form", "build_checks", "parse_spec"]
