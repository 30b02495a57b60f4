"""Steps, read from files such as ``4_add_mail.step``."""

import re
from collections import namedtuple

_NAME = re.compile(r"(\d+)_([a-z_]+)\.step$")

#: ``commands`` is a list of ``(operation, arguments)``.
Step = namedtuple("Step", "number name commands")


def parse_step(filename, text):
    """Return the step a file holds: one command per line."""
    match = _NAME.match(filename)
    if match is None:
        raise ValueError("not the name of a step: {!r}".format(filename))
    commands = []
    for line in text.splitlines():
        words = line.split()
        if words:
            commands.append((words[0], words[1:]))
    return Step(int(match.group(1)), match.group(2), commands)


def load_steps(files):
    """Return the steps of ``{filename: text}`` in the order they are run."""
    steps = [parse_step(filename, files[filename]) for filename in sorted(files)]
    numbers = [step.number for step in steps]
    for number in numbers:
        if numbers.count(number) > 1:
            raise ValueError("two steps have the number {}".format(number))
    return steps
