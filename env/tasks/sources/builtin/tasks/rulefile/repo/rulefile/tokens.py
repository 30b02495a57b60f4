"""What the lexer hands to the parser."""

from collections import namedtuple

#: ``line`` and ``column`` count from 1, as editors do.
Token = namedtuple("Token", "kind text line column")

NAME, NUMBER, EQUALS, NEWLINE, END = "name", "number", "=", "newline", "end"
