"""A mailing writes the same letter to many people."""

from .scope import Scope
from .template import Template


class Mailing:
    """One template with fields common to all letters."""

    def __init__(self, text, **common):
        self._template = Template(text)
        self._common = Scope()
        self._common.update(common)

    def letter(self, recipient):
        """Return the letter for one recipient, a dict of fields."""
        scope = Scope(parent=self._common)
        scope.update(recipient)
        return self._template.render(scope)

    def letters(self, recipients):
        """Return the letters for all recipients, in order."""
        return [self.letter(recipient) for recipient in recipients]
