"""Mesos' dict shapes, taken from the recordings and from the variants that mesos.proto allows."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hydra.engine.resources import ResourceNeed, add, fits, need_of, port_count
from hydra.mesos import translate as mesos
from hydra.model import Demand, Resources
from tests.mesos import recordings
from tests.mesos.recordings import events

Json = dict[str, Any]


def scalar(name: str, value: float, **more: Any) -> Json:
    return {"name": name, "type": "SCALAR", "scalar": {"value": value}, **more}


def ports(begin: int, end: int, **more: Any) -> Json:
    return {"name": "ports", "type": "RANGES", "ranges": {"range": [{"begin": begin, "end": end}]}, **more}


STATIC: Json = {"role": "hydra"}
DYNAMIC: Json = {"role": "hydra", "reservation": {"principal": "ops"}}
REFINED: Json = {"reservations": [{"type": "STATIC", "role": "hydra"}], "allocation_info": {"role": "hydra"}}


def test_a_recorded_offer_becomes_an_agent() -> None:
    offer = mesos.offer(events("OFFERS")[0]["offers"][0])
    assert offer.id.endswith("-O0")
    assert offer.agent.id.endswith("-S1")
    assert offer.agent.hostname == "127.0.0.1"
    assert offer.agent.attributes == {"group": "cpu16-mem60", "rack": "12", "slots": "[1-3]"}
    expected = Resources(cpus=16.0, mem=60000.0, disk=10000.0, ports=((2000, 2999), (31500, 32000)))
    assert offer.agent.resources == expected
    assert (offer.address, offer.ip) == ("127.0.0.1:5052", "127.0.0.1")


def test_the_operators_list_agrees_with_the_offers() -> None:
    listed = mesos.agents(recordings.exchange("agents as the operator endpoint lists them")["response"]["body"])
    offered = [mesos.offer(offer).agent for offer in events("OFFERS")[0]["offers"]]
    assert listed == offered


def test_used_resources_are_not_free() -> None:
    have = {"cpus": 4.0, "mem": 100.0, "disk": 0.0, "ports": "[1-10, 20-30]"}
    used = {"cpus": 1.5, "mem": 60.0, "disk": 0.0, "ports": "[3-4, 20-20]"}
    row: Json = {"id": "S", "hostname": "h", "resources": have, "used_resources": used}
    ended = {**row, "id": "gone", "active": False}
    (agent,) = mesos.agents({"slaves": [row, ended]})
    assert agent.resources == Resources(cpus=2.5, mem=40.0, ports=((1, 2), (5, 10), (21, 30)))


@pytest.mark.parametrize(
    ("attribute", "text"),
    [
        ({"type": "SCALAR", "scalar": {"value": 12.0}}, "12"),
        ({"type": "SCALAR", "scalar": {"value": 0.5}}, "0.5"),
        ({"type": "RANGES", "ranges": {"range": [{"begin": 1, "end": 3}, {"begin": 7, "end": 7}]}}, "[1-3,7-7]"),
        ({"type": "TEXT", "text": {"value": "cpu4-mem16"}}, "cpu4-mem16"),
        ({"type": "SET", "set": {"item": ["a", "b"]}}, "{a,b}"),
    ],
)
def test_attributes_read_as_they_were_written(attribute: Json, text: str) -> None:
    message = {**events("OFFERS")[0]["offers"][0], "attributes": [{"name": "x", **attribute}]}
    assert mesos.offer(message).agent.attributes == {"x": text}


@pytest.mark.parametrize("kind", [STATIC, DYNAMIC, REFINED], ids=["static", "dynamic", "refined"])
def test_reserved_resources_count_and_go_first_and_stay_what_they_are(kind: Json) -> None:
    parts = [scalar("cpus", 1.0, role="*"), scalar("cpus", 0.4, **kind), scalar("mem", 64.0, role="*")]
    assert mesos.total(parts).cpus == 1.4
    taken, left, _ = mesos.take(parts, ResourceNeed(cpus=0.6, mem=64.0)) or pytest.fail("it fits")
    assert taken == [scalar("cpus", 0.4, **kind), scalar("cpus", 0.2, role="*"), scalar("mem", 64.0, role="*")]
    assert left == [scalar("cpus", 0.8, role="*")]


@pytest.mark.parametrize("odd", [{"revocable": {}}, {"shared": {}}, {"disk": {"source": {"type": "MOUNT"}}}])
def test_what_may_be_taken_away_or_belongs_to_others_is_not_used(odd: Json) -> None:
    message = {**events("OFFERS")[0]["offers"][0], "resources": [scalar("cpus", 1.0), scalar("cpus", 8.0, **odd)]}
    assert mesos.offer(message).agent.resources.cpus == 1.0


def test_other_resources_of_an_offer_are_left_alone() -> None:
    parts = [scalar("gpus", 2.0), {"name": "zones", "type": "SET", "set": {"item": ["a"]}}, scalar("cpus", 1.0)]
    assert mesos.total(parts) == Resources(cpus=1.0)
    taken, left, _ = mesos.take(parts, ResourceNeed(cpus=0.5)) or pytest.fail("it fits")
    assert taken == [scalar("cpus", 0.5)]
    assert left == [*parts[:2], scalar("cpus", 0.5)]


@st.composite
def offers(draw: st.DrawFn) -> list[Json]:
    kinds = st.sampled_from([{"role": "*"}, STATIC, DYNAMIC, REFINED])
    milli = st.integers(1, 8000).map(lambda n: n / 1000)
    found = [scalar(draw(st.sampled_from(["cpus", "mem", "disk"])), draw(milli), **draw(kinds)) for _ in range(4)]
    start = 31000
    for _ in range(draw(st.integers(0, 3))):
        first = start + draw(st.integers(0, 5))
        last = first + draw(st.integers(0, 9))
        found.append(ports(first, last, **draw(kinds)))
        start = last + 2
    return found


MILLI = st.integers(0, 9000).map(lambda n: n / 1000)


@settings(max_examples=30)
@given(offers(), st.builds(ResourceNeed, cpus=MILLI, mem=MILLI, ports=st.integers(0, 12)))
def test_a_launch_takes_exactly_what_it_needs_and_never_more_than_there_is(
    parts: list[Json], need: ResourceNeed
) -> None:
    got = mesos.take(parts, need)
    whole = mesos.total(parts)
    assert (got is not None) == fits(need, whole)
    if got is None:
        return
    taken, left, numbers = got
    sum_taken = mesos.total(taken)
    assert (sum_taken.cpus, sum_taken.mem, port_count(sum_taken)) == (need.cpus, need.mem, need.ports)
    assert len(set(numbers)) == len(numbers) == need.ports
    assert add(sum_taken, mesos.total(left)) == add(whole, Resources())
    assert all(part.get("scalar", {}).get("value", 1) > 0 for part in taken)


@settings(max_examples=30)
@given(st.floats(0, 4), st.floats(0, 0.3), st.floats(0, 500), st.floats(0, 60), st.integers(1, 2000))
def test_a_demand_is_rounded_up_to_what_mesos_can_keep(
    base_cpus: float, cpus: float, base_mem: float, mem: float, count: int
) -> None:
    demand = Demand(base_cpus, base_mem, cpus, mem)
    need, whole = need_of(demand, count), mesos.rounded_demand(demand, count)
    kept = need_of(whole, count)
    assert kept.cpus >= need.cpus - 1e-6
    assert kept.mem >= need.mem - 1e-6
    assert kept.cpus - max(need.cpus, mesos.LEAST_CPUS) <= 0.0011
    assert kept.mem - max(need.mem, mesos.LEAST_MEM) <= 0.0011
    assert round(kept.cpus, 3) == kept.cpus


@pytest.mark.parametrize(
    ("means", "states"),
    [
        ("starting", "STAGING STARTING"),
        ("running", "RUNNING KILLING"),
        ("finished", "FINISHED"),
        ("failed", "FAILED ERROR"),
        ("killed", "KILLED"),
        ("lost", "LOST DROPPED UNREACHABLE GONE GONE_BY_OPERATOR UNKNOWN OF_A_LATER_MESOS"),
    ],
)
def test_every_task_state_means_something(means: str, states: str) -> None:
    assert {mesos.TaskUpdate("t", f"TASK_{state}").means for state in states.split()} == {means}


def test_every_recorded_update_is_read() -> None:
    for event in events("UPDATE"):
        update = mesos.update(event["status"])
        assert update.state in mesos.STATES
        assert update.message in update.detail
        assert update.uuid == event["status"].get("uuid", "")


def test_a_task_has_no_shell_and_its_secrets_are_in_its_environment_only() -> None:
    command = ("/bin/sh", "hydra-run", "python", "-m", "x; rm -rf /")
    what = mesos.command_info(command, {"SECRET": "s3cret"}, [mesos.Uri("http://h/p/a.tar.gz")])
    cpus = [scalar("cpus", 0.1)]
    info = mesos.task_info(task="g.1", name="g", agent="S", resources=cpus, command=what, grace_s=5.0)
    assert info["command"]["shell"] is False
    assert info["command"]["value"] == "/bin/sh"
    assert info["command"]["arguments"] == list(command)
    assert info["command"]["uris"][0] | {"extract": True, "cache": True} == info["command"]["uris"][0]
    environment = info["command"].pop("environment")
    assert environment["variables"] == [{"name": "SECRET", "type": "VALUE", "value": "s3cret"}]
    assert "s3cret" not in str(info)
    assert info["kill_policy"]["grace_period"]["nanoseconds"] == 5_000_000_000


def test_only_what_is_handled_is_claimed() -> None:
    info = mesos.framework_info(
        name="hydra/r", user="u", role="*", principal="", failover_timeout_s=9.0, hostname="h", framework="F"
    )
    assert info["capabilities"] == [{"type": "PARTITION_AWARE"}]
    assert (info["id"], info["checkpoint"], info["failover_timeout"]) == ({"value": "F"}, True, 9.0)
    assert "principal" not in info
