"""Text reports for the people on the floor."""


def movement_report(history, before, after):
    """Return one line per shelf whose count differs between two moments."""
    changes = history.changes(before, after)
    if not changes:
        return ["no movement"]
    lines = []
    for (article, shelf), difference in sorted(changes.items()):
        lines.append("{:<10} {:<4} {:+d}".format(article, shelf, difference))
    return lines
