"""Turn fields into functions that judge an answer."""


def is_number(answer, low, high):
    """Tell whether *answer* is a whole number from *low* to *high*."""
    try:
        return low <= int(answer) <= high
    except ValueError:
        return False


def is_choice(answer, choices):
    """Tell whether *answer* is one of *choices*, however it is written."""
    return answer.strip().lower() in [choice.lower() for choice in choices]


def is_text(answer):
    """Tell whether there is any answer at all."""
    return bool(answer.strip())


def build_checks(fields):
    """Return ``{field name: function(answer) -> bool}``."""
    checks = {}
    for field in fields:
        options = field.options
        if field.kind == "number":
            low, high = int(options[0]), int(options[1])
            checks[field.name] = lambda answer: is_number(answer, low, high)
        elif field.kind == "choice":
            checks[field.name] = lambda answer, choices=options: is_choice(answer, choices)
        else:
            checks[field.name] = is_text
    return checks
