"""Descriptions of forms: ``age number 0 120`` or ``size choice S M L``."""

from collections import namedtuple

Field = namedtuple("Field", "name kind options")

KINDS = {"number": 2, "choice": 1, "text": 0}


def parse_spec(text):
    """Return the fields a description names, in order."""
    fields = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split()
        if not words:
            continue
        if len(words) < 2 or words[1] not in KINDS:
            raise ValueError("line {}: want name, kind and options".format(number))
        name, kind, options = words[0], words[1], words[2:]
        if len(options) < KINDS[kind]:
            raise ValueError("line {}: {} needs more options".format(number, kind))
        fields.append(Field(name, kind, options))
    return fields
