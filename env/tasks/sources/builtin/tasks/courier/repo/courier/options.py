"""Options of a line and how layers of them combine."""

DEFAULTS = {
    "retries": 3,
    "pause": 2.0,
    "compress": True,
    "receipt": False,
    "prefix": "msg",
}


def check(layer, where):
    """Refuse options nobody knows."""
    for name in layer:
        if name not in DEFAULTS:
            raise ValueError("{}: no option {!r}".format(where, name))


def combine(*layers):
    """Return one dict of options; later layers count more than earlier ones."""
    result = dict(DEFAULTS)
    for layer in layers:
        for name in result:
            result[name] = layer.get(name) or result[name]
    return result
