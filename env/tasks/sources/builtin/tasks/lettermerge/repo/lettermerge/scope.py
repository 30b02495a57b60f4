"""The fields a letter can use."""


class MissingField(KeyError):
    """The template uses a field nobody has filled."""

    def __str__(self):
        return "no value for {}".format(self.args[0])


class Scope:
    """Fields of one letter; what it lacks is looked up in its parent."""

    _values = {}

    def __init__(self, parent=None):
        self._parent = parent

    def set(self, name, value):
        """Fill one field."""
        self._values[name.lower()] = str(value)

    def update(self, fields):
        """Fill several fields; None leaves a field open."""
        for name, value in fields.items():
            if value is not None:
                self.set(name, value)

    def get(self, name):
        """Return the value of a field."""
        name = name.lower()
        if name in self._values:
            return self._values[name]
        if self._parent is not None:
            return self._parent.get(name)
        raise MissingField(name)

    def has(self, name):
        """Tell whether the field is filled here or in a parent."""
        try:
            self.get(name)
        except MissingField:
            return False
        return True
