from datetime import datetime

import pytest

from waymark import Dispatcher, Network, NoRoute, Planner

EIGHT = datetime(2024, 5, 6, 8, 0)


@pytest.fixture
def network():
    network = Network()
    network.connect("depot", "mill", 10)
    network.connect("mill", "harbour", 12)
    network.connect("depot", "church", 15)
    network.connect("church", "harbour", 20)
    return network


def test_quickest_route(network):
    assert Planner(network).route("depot", "harbour") == (22, ["depot", "mill", "harbour"])


def test_closed_road_is_avoided(network):
    planner = Planner(network)
    planner.route("depot", "harbour")
    network.close("mill", "harbour")
    assert planner.route("depot", "harbour") == (35, ["depot", "church", "harbour"])


def test_unreachable_place(network):
    network.connect("island", "lighthouse", 3)
    with pytest.raises(NoRoute):
        Planner(network).route("depot", "island")


def test_delay_known_before_planning(network):
    network.report_delay("mill", "harbour", 30)
    assert Planner(network).route("depot", "harbour")[0] == 35


def test_timetable_counts_unloading(network):
    dispatcher = Dispatcher(Planner(network), "depot", unloading=4)
    assert dispatcher.timetable(EIGHT, ["mill", "harbour"]) == [
        ("mill", datetime(2024, 5, 6, 8, 10)),
        ("harbour", datetime(2024, 5, 6, 8, 26)),
    ]


def test_arrival_after_a_delay_came_in(network):
    dispatcher = Dispatcher(Planner(network), "depot")
    assert dispatcher.arrival(EIGHT, ["harbour"], "harbour") == datetime(2024, 5, 6, 8, 22)
    network.report_delay("depot", "mill", 9)
    assert dispatcher.arrival(EIGHT, ["harbour"], "harbour") == datetime(2024, 5, 6, 8, 31)


def test_delay_on_a_road_that_is_not_there(network):
    with pytest.raises(KeyError):
        network.report_delay("depot", "harbour", 5)
