"""Cut a rule file into tokens."""

import re

from .tokens import END, EQUALS, NAME, NEWLINE, NUMBER, Token

_PATTERN = re.compile(
    r"(?P<blank>[ \t]+|\#[^\n]*)"
    r"|(?P<newline>\n)"
    r"|(?P<name>[A-Za-z_][A-Za-z_0-9]*)"
    r"|(?P<number>\d+)"
    r"|(?P<equals>=)"
    r"|(?P<other>.)"
)

_KINDS = {"newline": NEWLINE, "name": NAME, "number": NUMBER, "equals": EQUALS}


def tokenize(text):
    """Yield the tokens of *text*, the last one being of kind ``end``.

    A character that begins no token is handed on as a token of its own kind,
    so that the parser can complain about it in context.
    """
    line, margin = 1, 0
    for match in _PATTERN.finditer(text):
        group = match.lastgroup
        if group == "blank":
            continue
        column = match.start() - margin + 1
        yield Token(_KINDS.get(group, match.group()), match.group(), line, column)
        if group == "newline":
            line += 1
            margin = match.start()
    yield Token(END, "", line, len(text) - margin + 1)
