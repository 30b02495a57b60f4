import zlib

import pytest

from courier import Courier, Profiles, Undelivered, UnknownProfile


class Line:
    """A line that fails a number of times before it works."""

    def __init__(self, failures=0):
        self.failures = failures
        self.received = []
        self.attempts = 0

    def __call__(self, payload):
        self.attempts += 1
        if self.attempts <= self.failures:
            raise OSError("no carrier")
        self.received.append(payload)


@pytest.fixture
def profiles():
    profiles = Profiles()
    profiles.define("radio", retries=5, pause=0.5)
    profiles.define("beacon", base="radio", receipt=True, prefix="bcn")
    profiles.define("test-bench", base="radio", retries=0, compress=False)
    return profiles


def test_profile_builds_on_another(profiles):
    options = profiles.resolve("beacon")
    assert (options["retries"], options["receipt"]) == (5, True)


def test_options_of_the_call_come_last(profiles):
    assert profiles.resolve("beacon", pause=9.0)["pause"] == 9.0


def test_unknown_profile(profiles):
    with pytest.raises(UnknownProfile):
        profiles.resolve("pigeon")


def test_unknown_option(profiles):
    with pytest.raises(ValueError):
        profiles.define("pigeon", wings=2)


def test_message_arrives_after_failures(profiles):
    line, pauses = Line(failures=2), []
    assert Courier(profiles, line, pauses.append).send("radio", "hello") == 3
    assert pauses == [0.5, 0.5]


def test_header_of_a_beacon(profiles):
    line = Line()
    Courier(profiles, line, None).send("beacon", "hello")
    assert zlib.decompress(line.received[0]) == b"bcn-1 receipt\nhello"


def test_bench_sends_once(profiles):
    line = Line(failures=9)
    with pytest.raises(Undelivered):
        Courier(profiles, line, lambda seconds: None).send("test-bench", "hello")
    assert line.attempts == 1


def test_bench_sends_plain_text(profiles):
    line = Line()
    Courier(profiles, line, None).send("test-bench", "hello")
    assert line.received == [b"msg-1\nhello"]
