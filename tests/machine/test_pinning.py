"""On which CPUs the processes of each role run, and which pins are refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hydra.config.scenario import resolve
from hydra.engine.pinning import RolePin, cpus_of_roles, pin_environment, refusal_of
from hydra.errors import ConfigError, UsageError
from hydra.model import GroupRole, MachineRecord, format_cpus
from hydra.run.own_machine import pinned_scenario, unkept_pin
from tests.machine.trees import machine

MANY = 1000
TWO = MachineRecord(cpus=(0, 1), allowed=(0, 1), cores=((0,), (1,)), nodes=((0, 1),))
HALF = MachineRecord(cpus=(0, 1), cpuset=(1,))
UNKNOWN = MachineRecord(cpus=(0, 1), allowed=(0, 1))
LARGE = MachineRecord(
    cpus=tuple(range(32)),
    allowed=tuple(range(32)),
    cores=tuple((n, n + 16) for n in range(16)),
    nodes=(tuple(range(0, 32, 2)), tuple(range(1, 32, 2))),
)


def decided(on: MachineRecord, publisher: str, server: str | None, subscriber: str, subscribers: int = MANY) -> str:
    roles: dict[GroupRole, RolePin] = {
        "publisher": RolePin(publisher, 1),
        "subscriber": RolePin(subscriber, subscribers),
    }
    if server is not None:
        roles["server"] = RolePin(server, 1)
    return "; ".join(f"{role[:3]} {format_cpus(cpus)}" for role, cpus in cpus_of_roles(roles, on).items())


@pytest.mark.parametrize(
    ("on", "pins", "cpus"),
    [
        (TWO, ("", None, ""), ""),
        (TWO, ("0", None, ""), "pub 0"),
        (TWO, ("0", None, "0-1"), "pub 0; sub 0-1"),
        (TWO, ("apart", None, "apart"), "pub 0; sub 1"),
        # A role without a pin must not run on the cores of the others.
        (TWO, ("apart", None, ""), "pub 0; sub 1"),
        (TWO, ("apart", "", ""), "pub 0; ser 1; sub 1"),
        (TWO, ("0", None, "apart"), "pub 0; sub 1"),
        # Whole cores: with SMT both CPUs of each. Clients that could use more than one node get cores of both.
        (
            *(LARGE, ("apart", "apart", "apart")),
            "pub 0,16; ser 1-2,4,6,8,10,12,14,17-18,20,22,24,26,28,30; sub 3,5,7,9,11,13,15,19,21,23,25,27,29,31",
        ),
        # A server has what remains of the node on which clients have what they can use, in turn with the server.
        (LARGE, ("apart", "apart", "apart", 3), "pub 0,16; ser 2,4,6,8,18,20,22,24; sub 10,12,14,26,28,30"),
        (
            *(LARGE, ("apart", "apart", "apart", 4)),
            "pub 0,16; ser 1-8,10,12,14,17-24,26,28,30; sub 9,11,13,15,25,27,29,31",
        ),
        (
            *(LARGE, ("apart", "", "", 6)),
            "pub 0,16; ser 2,4,6,8,10,12,14,18,20,22,24,26,28,30; sub 2,4,6,8,10,12,14,18,20,22,24,26,28,30",
        ),
        # Few clients leave cores to the node that they do not need.
        (LARGE, ("apart", None, "apart", 3), "pub 0,16; sub 2,4,6,18,20,22"),
        (LARGE, ("apart", None, "apart", 1), "pub 0,16; sub 2,18"),
    ],
)  # fmt: skip
def test_the_cpus_of_roles(on: MachineRecord, pins: tuple[str, str | None, str], cpus: str) -> None:
    assert decided(on, *pins) == cpus


def test_a_core_of_which_a_cpuset_has_one_half_is_not_used_and_an_isolated_one_is_if_it_is_named(
    tmp_path: Path,
) -> None:
    container = machine("container", tmp_path / "a")
    assert decided(container, "apart", None, "apart") == "pub 1,5; sub 2-3,6-7"
    intel = machine("bare-metal-intel", tmp_path / "b")
    assert decided(intel, "3,7", None, "apart") == "pub 3,7; sub 0-2,4-6"
    amd = machine("bare-metal-amd", tmp_path / "c")
    assert decided(amd, "apart", None, "apart", 1) == "pub 0-1; sub 2-3"


@pytest.mark.parametrize(
    ("on", "pins", "what"),
    [
        (TWO, ("2", None, ""), "publisher.pin = '2': this machine has no CPU 2; name some of the CPUs 0-1"),
        (HALF, ("", "0-1", ""), "server.pin = '0-1': its control group (cpuset) has no CPU 0"),
        (TWO, ("apart",) * 3, "for publisher and server and subscriber each: 3 cores, and this machine has 2 free"),
        (TWO, ("apart", "apart", ""), "and one for subscriber together: 3 cores"),
        (TWO, ("0-1", None, "apart"), "1 cores, and this machine has 0 free"),
        (UNKNOWN, ("apart", None, ""), "the kernel does not show here which CPUs share a core"),
    ],
)  # fmt: skip
def test_a_pin_that_cannot_be(on: MachineRecord, pins: tuple[str, str | None, str], what: str) -> None:
    with pytest.raises(UsageError, match=re.escape(what)):
        decided(on, *pins)


def test_on_other_hosts_a_list_is_kept_exactly_and_apart_needs_cpus_of_its_own() -> None:
    roles: dict[GroupRole, RolePin] = {"publisher": RolePin("0-1", 1), "subscriber": RolePin("apart", 5)}
    exact = MachineRecord(cpus=(0, 1, 2, 3), allowed=(0, 1))
    everywhere = MachineRecord(cpus=(0, 1, 2, 3), allowed=(0, 1, 2, 3))
    both: frozenset[GroupRole] = frozenset({"publisher", "subscriber"})
    assert unkept_pin(roles, [("a", exact, both), ("b", everywhere, frozenset()), ("c", MachineRecord(), both)]) is None
    # A role that has a host for itself shares its cores with no other role.
    assert unkept_pin(roles, [("b", everywhere, frozenset({"subscriber"}))]) is None
    refused = unkept_pin(dict.fromkeys(both, RolePin("apart", 1)), [("b", everywhere, both)])
    assert refused is not None
    assert "on b, processes may use all 4 CPUs" in str(refused)
    assert "on b, processes may use CPUs 0-3" in str(refusal_of("publisher", "0-1", (0, 1, 2, 3), (0, 1, 2, 3), "b"))
    assert pin_environment("0-1") == {"HYDRA_CPUS": "0-1"}
    assert pin_environment("apart") == pin_environment("") == {}


def test_apart_becomes_lists_in_the_scenario_that_is_run() -> None:
    resolved = resolve("zmqrate", {"publisher.pin": "apart"})
    run, cpus = pinned_scenario(resolved, TWO)
    assert (run.scenario.publisher.pin, run.scenario.subscriber.pin, run.scenario.server.pin) == ("0", "1", "")
    assert cpus == {"publisher": (0,), "subscriber": (1,)}
    assert pinned_scenario(resolve("zmqrate"), TWO)[0].scenario == resolve("zmqrate").scenario


@pytest.mark.parametrize(
    ("overrides", "what"),
    [
        ({"publisher.pin": "0-x"}, 'publisher.pin: must be a list of CPUs, such as "0-3,8", or "apart", not \'0-x\''),
        ({"server.pin": "0"}, "system zmq has no servers of its own"),
    ],
)
def test_a_pin_that_no_scenario_can_have(overrides: dict[str, object], what: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(what)):
        resolve("zmqrate", overrides)


def test_a_server_that_hydra_does_not_start_cannot_be_pinned() -> None:
    with pytest.raises(ConfigError, match="has no effect in this run"):
        resolve("nats-fixed", {"server.pin": "0", "nats.servers": "127.0.0.1:4222"})
