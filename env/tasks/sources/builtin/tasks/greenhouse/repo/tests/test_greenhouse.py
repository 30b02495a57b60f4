import pytest

from greenhouse import Limits, Watch, decode, load_limits

SETTINGS = '{"zones": {"3": [18, 24], "4": [22, 30]}, "house": [8, 32]}'


def test_decode():
    samples = decode("3:21.5:60, 4:25:71.5")
    assert [sample.zone for sample in samples] == [3, 4]
    assert samples[1].humidity == 71.5


def test_decode_refuses_gaps():
    with pytest.raises(ValueError):
        decode("3::60")


def test_limits_given_directly():
    watch = Watch(Limits({3: (18, 24)}, house=load_limits(SETTINGS).of(99)))
    assert watch.feed("7:33:50") == ["zone 7 is too hot"]


def test_range_upside_down():
    with pytest.raises(ValueError):
        load_limits('{"zones": {"3": [24, 18]}}')


def test_number_of_zones():
    assert len(load_limits(SETTINGS)) == 2


def test_rest_of_the_house():
    watch = Watch(load_limits(SETTINGS))
    assert watch.feed("9:7.5:50") == ["zone 9 is too cold"]
    assert watch.feed("9:9.5:50") == ["zone 9 is well again"]


def test_zone_with_a_narrow_range():
    watch = Watch(load_limits(SETTINGS))
    assert watch.feed("3:25.5:55, 4:25.5:55") == ["zone 3 is too hot"]


def test_alarm_stays_open():
    watch = Watch(load_limits(SETTINGS))
    watch.feed("4:20.0:55")
    watch.feed("4:21.0:55")
    assert watch.open_alarms() == {4: "cold"}
