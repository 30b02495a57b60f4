"""Show a mistake to the person who wrote the file."""


def render(text, error):
    """Return the faulty line, a caret below the place, and the message."""
    token = error.token
    lines = text.split("\n")
    source = lines[token.line - 1]
    width = max(len(token.text.strip()), 1)
    caret = " " * (token.column - 1) + "^" * width
    return "\n".join([source, caret, error.message])
