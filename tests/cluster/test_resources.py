"""Mesos' syntax for attributes and resources, and the arithmetic of resources."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hydra.engine import resources
from hydra.engine.resources import ResourceNeed, parse_attributes, parse_resources
from hydra.model import Agent, Demand, Group, Launch, Resources


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("group:cpu4-mem16", {"group": "cpu4-mem16"}),
        ("group:cpu4-mem16;rack:r1;", {"group": "cpu4-mem16", "rack": "r1"}),
        (" level : 10 ; ids : [100-200,300-400] ", {"level": "10", "ids": "[100-200,300-400]"}),
        ("url:http://a:80", {"url": "http://a:80"}),
    ],
)
def test_attributes_are_read_as_text(text: str, expected: dict[str, str]) -> None:
    assert resources.parse_attributes(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", Resources()),
        ("cpus:4;mem:15000", Resources(cpus=4, mem=15000)),
        ("cpus:0.5; mem:15; disk:10; ports:[3-5, 7-9]", Resources(0.5, 15, 10, ((3, 5), (7, 9)))),
        ("ports:[5-6,1-2,3-4]", Resources(ports=((1, 6),))),
    ],
)
def test_resources_are_read_in_mesos_syntax(text: str, expected: Resources) -> None:
    assert resources.parse_resources(text) == expected
    assert resources.parse_resources(resources.format_resources(expected)) == expected


@pytest.mark.parametrize(
    ("parse", "text", "expected"),
    [
        *((parse_attributes, text, "name:value") for text in ("group", "group:", ":x")),
        (parse_attributes, "a:1;a:2", "twice"),
        (parse_resources, "cpus", "name:value"),
        (parse_resources, "cpus:four", "must be a number such as cpus:4"),
        (parse_resources, "cpus:-1", "must be a number"),
        (parse_resources, "cpus:inf", "must be a number"),
        (parse_resources, "cpus:1;cpus:2", "twice"),
        (parse_resources, "ports:[1-2];ports:[3-4]", "twice"),
        (parse_resources, "gpus:1", "unknown resource 'gpus'"),
        (parse_resources, "ports:31000-32000", "ports must be ranges"),
        (parse_resources, "ports:[31000]", "ports must be ranges"),
        (parse_resources, "ports:[32000-31000]", "must rise"),
        (parse_resources, "ports:[0-10]", "1-65535"),
        (parse_resources, "ports:[1-70000]", "1-65535"),
    ],
)
def test_malformed_texts_are_refused(parse: Callable[[str], object], text: str, expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        parse(text)


def test_a_need_is_the_base_and_a_part_for_each_client() -> None:
    demand = Demand(base_cpus=0.1, base_mem=64, cpus_per_client=0.002, mem_per_client=16, ports=2)
    assert resources.need_of(demand, 100) == ResourceNeed(cpus=0.3, mem=1664, ports=2)


def test_a_need_fits_if_every_resource_does() -> None:
    free = Resources(cpus=4, mem=100, ports=((1, 1), (5, 5)))
    assert all(resources.fits(need, free) for need in (ResourceNeed(), ResourceNeed(cpus=4, mem=100, ports=2)))
    for more in (ResourceNeed(cpus=4.001), ResourceNeed(mem=100.5), ResourceNeed(ports=3)):
        assert not resources.fits(more, free), more


def test_the_lowest_ports_are_taken_across_ranges() -> None:
    ports, left = resources.take_ports(Resources(cpus=1, ports=((10, 11), (20, 22))), 3)
    assert ports == (10, 11, 20)
    assert left == Resources(cpus=1, ports=((21, 22),))
    with pytest.raises(ValueError, match="3 ports are needed and 2 free"):
        resources.take_ports(left, 3)


def test_ten_tenths_of_a_cpu_fill_it_exactly() -> None:
    free = Resources(cpus=1)
    for _ in range(10):
        free, _ports = resources.take(free, ResourceNeed(cpus=0.1))
    assert free == Resources()
    with pytest.raises(ValueError, match="does not fit"):
        resources.take(free, ResourceNeed(cpus=0.001))


@pytest.mark.parametrize("right", [Resources(cpus=2), Resources(mem=1), Resources(disk=1), Resources(ports=((9, 10),))])
def test_more_than_there_is_cannot_be_subtracted(right: Resources) -> None:
    with pytest.raises(ValueError, match="too little of"):
        resources.subtract(Resources(cpus=1, ports=((10, 20),)), right)


AMOUNT = st.integers(0, 10_000_000).map(lambda n: n / 1000)
PORTS = st.sets(st.integers(1, 60)).map(
    lambda ports: resources.parse_resources(f"ports:[{','.join(f'{p}-{p}' for p in ports)}]").ports if ports else ()
)
RESOURCES = st.builds(Resources, cpus=AMOUNT, mem=AMOUNT, disk=AMOUNT, ports=PORTS)


@settings(max_examples=30)
@given(RESOURCES, st.builds(ResourceNeed, cpus=AMOUNT, mem=AMOUNT, ports=st.integers(0, 20)))
def test_what_was_taken_and_is_given_back_restores_what_was_free(free: Resources, need: ResourceNeed) -> None:
    if not resources.fits(need, free):
        return
    left, ports = resources.take(free, need)
    assert len(ports) == need.ports == resources.port_count(free) - resources.port_count(left)
    demand = Demand(base_cpus=need.cpus, base_mem=need.mem, ports=need.ports)
    group = Group("g", "subscriber", 0, 1, (), {}, demand)
    taken = resources.taken_by(Launch(group, Agent("a", "a", {}, free), ports))
    assert resources.subtract(free, taken) == left
    assert resources.add(left, taken) == free
