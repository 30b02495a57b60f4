"""Serial letters: one template, many recipients."""

from .mailing import Mailing
from .scope import MissingField, Scope
from .template import Template, TemplateError

__all__ = ["Mailing", "MissingField", "Scope", "Template", "TemplateError"]
