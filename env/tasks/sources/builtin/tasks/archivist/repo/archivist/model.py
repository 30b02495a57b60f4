"""People and documents."""


class User:
    """Somebody with an account."""

    def __init__(self, name, editor=False):
        self.name = name
        self.editor = editor
        self.suspended = False

    def __repr__(self):
        return "User({!r})".format(self.name)


class Document:
    """A text with an owner and all its former versions."""

    def __init__(self, title, owner, text=""):
        self.title = title
        self.owner = owner
        self.locked = False
        self.versions = [text]

    @property
    def text(self):
        """The newest version."""
        return self.versions[-1]
