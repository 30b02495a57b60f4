"""The merged calendar."""

from .stamps import format_stamp


class Calendar:
    """Entries of any number of feeds."""

    def __init__(self):
        self._entries = []

    def add(self, entries):
        """Take entries in; the order does not matter."""
        self._entries.extend(entries)

    def entries(self):
        """Return all entries, earliest first."""
        return sorted(self._entries, key=lambda entry: entry.start)

    def clashes(self):
        """Return pairs of titles whose entries overlap."""
        pairs = []
        entries = self.entries()
        for index, first in enumerate(entries):
            for second in entries[index + 1:]:
                if second.start >= first.end:
                    break
                pairs.append((first.title, second.title))
        return pairs

    def lines(self):
        """Return the agenda as text, one line per entry."""
        return ["{} {}".format(format_stamp(entry.start), entry.title) for entry in self.entries()]
