"""What a number of clients needs, by implementation and packing."""

from __future__ import annotations

import pytest

from hydra.config import load_scenario
from hydra.limits.needs import FOOTPRINTS, Footprint, needs


@pytest.mark.parametrize(
    ("packed", "processes", "threads"),
    [(1, 15_360 + 1 + 2 * 17, 3 * 15_361 + 6 * 17), (100, 154 + 1 + 2 * 17, 3 * 155 + 6 * 17), (15_360, 36, 108)],
)
def test_packing_saves_processes_and_neither_connections_nor_ledgers(packed: int, processes: int, threads: int) -> None:
    scenario = load_scenario("zmqfixed", {"client": "native", "native.clients_per_process": packed})
    needed = needs(scenario, clients=15_360, groups=17, fork_window=128)
    assert (needed.processes, needed.threads) == (processes, threads)
    assert needed.ports >= 15_360
    # One process holds a connection of every subscriber: the publisher. Packed together they need two files each.
    assert needed.files >= max(15_360, 2 * packed)


def test_a_packed_process_is_the_first_client_and_what_each_further_one_adds() -> None:
    alone = Footprint(3, 14, 700, further=Footprint(0, 2, 100))
    assert alone.of(1) is alone
    assert alone.of(11) == Footprint(3, 34, 1700)
    with pytest.raises(ValueError, match="takes one"):
        Footprint(3, 14, 700).of(2)


@pytest.mark.parametrize(("system", "client"), FOOTPRINTS)
def test_a_scenario_asks_for_the_memory_that_its_clients_take(system: str, client: str) -> None:
    name = "zmqfixed" if system == "zmq" else "kafka-fixed"
    scenario = load_scenario(name, {"client": client})
    assert scenario.subscriber.demand.mem_per_client == FOOTPRINTS[scenario.system, client].memory_bytes / 1e6
    explicit = load_scenario(name, {"client": client, "subscriber.demand.mem_per_client": 50.0})
    assert explicit.subscriber.demand.mem_per_client == 50.0


def test_every_broker_on_this_machine_counts_and_one_of_the_users_does_not() -> None:
    none, one, three = (
        needs(load_scenario("kafka-fixed", more), clients=10, groups=4, fork_window=128)
        for more in ({"kafka.bootstrap": "h:9092"}, {}, {"broker.count": 3})
    )
    assert (one.processes - none.processes, three.processes - none.processes) == (2, 9)
    assert three.memory_bytes - none.memory_bytes == 3 * (one.memory_bytes - none.memory_bytes) > 0
