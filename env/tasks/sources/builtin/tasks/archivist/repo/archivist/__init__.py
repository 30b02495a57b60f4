"""A document archive with owners, editors and locked documents."""

from .desk import Desk, PermissionDenied
from .model import Document, User

__all__ = ["Desk", "Document", "PermissionDenied", "User"]
