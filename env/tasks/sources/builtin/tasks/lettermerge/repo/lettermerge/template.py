"""Templates: text with fields such as ``{name}`` or ``{title|Sir or Madam}``."""

import re

_FIELD = re.compile(r"\{([^{}]*)\}")
_NAME = re.compile(r"[A-Za-z][A-Za-z_]*$")


class TemplateError(ValueError):
    """The text is not a template."""


class Template:
    """A parsed template."""

    def __init__(self, text):
        self._parts = list(self._parse(text))

    def render(self, scope):
        """Return the text with all fields of *scope* filled in."""
        out = []
        for kind, value, fallback in self._parts:
            if kind == "text":
                out.append(value)
            elif fallback is not None and not scope.has(value):
                out.append(fallback)
            else:
                out.append(scope.get(value))
        return "".join(out)

    def fields(self):
        """Return the names of all fields in order of appearance."""
        return [value for kind, value, _ in self._parts if kind == "field"]

    @staticmethod
    def _parse(text):
        end = 0
        for match in _FIELD.finditer(text):
            yield "text", text[end:match.start()], None
            name, bar, fallback = match.group(1).partition("|")
            if not _NAME.match(name):
                raise TemplateError("not a field name: {!r}".format(name))
            yield "field", name, fallback if bar else None
            end = match.end()
        yield "text", text[end:], None
