"""Forms as people fill them in."""

from .checks import build_checks
from .spec import parse_spec


class Form:
    """A form that can tell what is wrong with the answers."""

    def __init__(self, text):
        self._fields = parse_spec(text)
        self._checks = build_checks(self._fields)

    def names(self):
        """Return the names of all fields in order."""
        return [field.name for field in self._fields]

    def problems(self, answers):
        """Return one line per field that is missing, wrong or unknown."""
        found = []
        for name in self.names():
            if name not in answers:
                found.append("{}: missing".format(name))
            elif not self._checks[name](answers[name]):
                found.append("{}: cannot be {!r}".format(name, answers[name]))
        for name in sorted(set(answers) - set(self.names())):
            found.append("{}: not on the form".format(name))
        return found

    def accepts(self, answers):
        """Tell whether nothing is wrong with the answers."""
        return not self.problems(answers)
