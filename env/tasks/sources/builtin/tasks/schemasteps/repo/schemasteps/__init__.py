"""Bring a schema up to date, one numbered step after the other."""

from .runner import Runner
from .schema import Schema, SchemaError
from .steps import Step, load_steps

__all__ = ["Runner", "Schema", "SchemaError", "Step", "load_steps"]
