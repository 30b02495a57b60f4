"""Pick cards off a board with words such as ``label:urgent owner:ada``."""


def _parse(text):
    terms = []
    for word in text.split():
        field, colon, value = word.partition(":")
        if not colon or field not in ("label", "owner", "column"):
            raise ValueError("cannot understand {!r}".format(word))
        terms.append((field, value.lower()))
    return terms


def _matches(card, field, value):
    if field == "label":
        return value in card.labels
    if field == "owner":
        return (card.owner or "").lower() == value
    return card.column == value


def select(board, text):
    """Return the cards for which every word of *text* holds."""
    terms = _parse(text)
    return [
        card for card in board.cards()
        if all(_matches(card, field, value) for field, value in terms)
    ]
