"""Build a dict of rules out of tokens."""

from .lexer import tokenize
from .tokens import END, EQUALS, NAME, NEWLINE, NUMBER


class RuleError(ValueError):
    """The text is not a rule file; the token says where."""

    def __init__(self, message, token):
        super().__init__("line {}, column {}: {}".format(token.line, token.column, message))
        self.message = message
        self.token = token


def parse(text):
    """Return ``{name: value}``; a value is a number or another rule's name."""
    rules = {}
    tokens = tokenize(text)
    for token in tokens:
        if token.kind == NEWLINE:
            continue
        if token.kind == END:
            break
        if token.kind != NAME:
            raise RuleError("a rule begins with a name", token)
        if token.text in rules:
            raise RuleError("{} is set twice".format(token.text), token)
        rules[token.text] = _value(tokens)
    return rules


def _value(tokens):
    equals = next(tokens)
    if equals.kind != EQUALS:
        raise RuleError("expected =", equals)
    value = next(tokens)
    if value.kind == NUMBER:
        result = int(value.text)
    elif value.kind == NAME:
        result = value.text
    else:
        raise RuleError("expected a number or a name", value)
    rest = next(tokens)
    if rest.kind not in (NEWLINE, END):
        raise RuleError("expected the end of the line", rest)
    return result
