"""The desk takes requests and keeps the protocol."""

from . import policy
from .model import Document


class PermissionDenied(Exception):
    """The user may not do that."""


class Desk:
    """Keeps documents by title."""

    def __init__(self):
        self._documents = {}
        self.protocol = []

    def submit(self, user, title, text=""):
        """Put a new document into the archive and return it."""
        if user.suspended:
            raise PermissionDenied("{} is suspended".format(user.name))
        if title in self._documents:
            raise ValueError("there is already a document called {!r}".format(title))
        self._documents[title] = Document(title, user.name, text)
        self._note(user, "submitted", title)
        return self._documents[title]

    def read(self, user, title):
        """Return the newest version of a document."""
        document = self._require(policy.may_read, user, title)
        return document.text

    def save(self, user, title, text):
        """Add a version to a document."""
        document = self._require(policy.may_write, user, title)
        document.versions.append(text)
        self._note(user, "saved", title)

    def lock(self, user, title):
        """Keep the owner of a document from changing it."""
        self._require(policy.may_lock, user, title).locked = True
        self._note(user, "locked", title)

    def writable(self, user):
        """Return the titles the user may write to, in alphabetical order."""
        return sorted(
            title for title, document in self._documents.items()
            if policy.may_write(user, document)
        )

    def _require(self, rule, user, title):
        document = self._documents[title]
        if not rule(user, document):
            raise PermissionDenied("{} may not touch {!r}".format(user.name, title))
        return document

    def _note(self, user, verb, title):
        self.protocol.append("{} {} {}".format(user.name, verb, title))
