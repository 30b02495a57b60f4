"""Hand messages to a line until they arrive."""

import zlib


class Undelivered(Exception):
    """The line has failed too often."""


class Courier:
    """Sends over one line.

    *line* is a function that takes bytes and raises OSError when it fails;
    *wait* is called with the seconds to pause between two attempts.
    """

    def __init__(self, profiles, line, wait):
        self._profiles = profiles
        self._line = line
        self._wait = wait
        self._sent = 0

    def send(self, profile, text, **extra):
        """Send *text*; return the number of attempts it took."""
        options = self._profiles.resolve(profile, **extra)
        self._sent += 1
        payload = self._pack(text, options)
        attempts = 0
        while True:
            attempts += 1
            try:
                self._line(payload)
                return attempts
            except OSError as error:
                if attempts > options["retries"]:
                    raise Undelivered("gave up after {} attempts".format(attempts)) from error
                self._wait(options["pause"])

    def _pack(self, text, options):
        header = "{}-{}".format(options["prefix"], self._sent)
        if options["receipt"]:
            header += " receipt"
        body = "{}\n{}".format(header, text).encode("utf-8")
        return zlib.compress(body) if options["compress"] else body
