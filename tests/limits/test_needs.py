"""What a number of clients needs, by implementation and packing."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from hydra.config import plugins
from hydra.config.file_locations import scenarios
from hydra.config.resource_needs import ahead_bytes, expected_start_s, group_files, needs
from hydra.config.scenario import load_scenario, resolve
from hydra.config.shortages import read_limits, shortages
from hydra.kafkatest.footprints import BROKER
from hydra.kafkatest.transport_base import ConsumerTransport
from hydra.system import Footprint


@pytest.mark.parametrize(
    ("packed", "processes", "threads"),
    [(1, 15_360 + 1 + 2 * 17, 3 * 15_361 + 6 * 17), (100, 154 + 1 + 2 * 17, 3 * 155 + 6 * 17), (15_360, 36, 108)],
)
def test_packing_saves_processes_and_neither_connections_nor_ledgers(packed: int, processes: int, threads: int) -> None:
    scenario = resolve("zmqfixed", {"client": "native", "native.clients_per_process": packed})
    needed = needs(scenario, clients=15_360, groups=17, fork_window=128)
    assert (needed.processes, needed.threads) == (processes, threads)
    assert needed.ports >= 15_360
    # One process holds a connection of every subscriber: the publisher. Packed together they need two files each.
    assert needed.files >= max(15_360, 2 * packed)


@pytest.mark.parametrize(
    ("subscriptions", "packed", "files"), [("one", 19_900, 14 + 19_899), ("all", 19_900 // 6, 14 + 100_000)]
)
def test_a_process_is_packed_as_its_files_allow_and_each_publisher_has_its_own_listeners(
    subscriptions: str, packed: int, files: int
) -> None:
    changes = {"client": "zmtp", "publishers": 6, "settings.subscriptions": subscriptions}
    resolved = resolve("zmqfixed", changes)
    assert resolved.scenario.native.clients_per_process == packed
    assert load_scenario("zmqfixed", changes | {"native.clients_per_process": 7}).native.clients_per_process == 7
    needed = needs(resolved, clients=100_000, groups=12, fork_window=128)
    # On a loopback they dial from several addresses, so that ports are no limit.
    assert (needed.ports, needed.files) == (4096, files)
    alike = needs(
        replace(resolved, scenario=replace(resolved.scenario, client="native")),
        clients=100_000,
        groups=12,
        fork_window=128,
    )
    assert alike.ports == (100_000 if subscriptions == "all" else 16_667)
    # A publisher keeps something of each listener.
    assert needed.memory_bytes < (8e9 if subscriptions == "one" else 22e9)


@pytest.mark.parametrize(
    ("groups", "files"),
    [
        (4, 32 + 1000),  # a relay holds a connection of every process of its group
        (1001, 64 + 4 * 1001),  # the controller one of every relay
    ],
)
def test_connections_to_the_controller_are_those_of_relays(groups: int, files: int) -> None:
    scenario = resolve("kafka-fixed", {"kafka.bootstrap": "h:9092"})
    needed = needs(scenario, clients=3000, groups=groups, fork_window=128, publishers=1)
    assert needed.files == files
    assert needed.ports == 2 * 3001 + BROKER.own_ports


def test_a_group_needs_the_files_of_its_largest_process_in_the_largest_row() -> None:
    resolved = resolve("zmqfixed", {"client": "native", "native.clients_per_process": 100, "sweep.clients": [10, 2000]})
    alone = resolved.system.identity.implementations["native"].footprint
    assert group_files(resolved, "publisher", 1) == alone.files + 2000
    assert group_files(resolved, "subscriber", 100) == alone.of(100).files >= 200
    python = resolve("nats-fixed", {"client": "nats-py", "sweep.clients": [10, 2000]})
    assert group_files(python, "subscriber", 500) == 32 + 500  # the relay has a connection of each process
    assert group_files(python, "server", 1) > 2000 > 100 > group_files(python, "publisher", 1)


def test_a_packed_process_is_the_first_client_and_what_each_further_one_adds() -> None:
    alone = Footprint(3, 14, 700, further=Footprint(0, 2, 100))
    assert alone.of(1) is alone
    assert alone.of(11) == Footprint(3, 34, 1700)
    with pytest.raises(ValueError, match="takes one"):
        Footprint(3, 14, 700).of(2)


def test_each_subscriber_takes_something_for_every_server_that_it_knows_of() -> None:
    alone = Footprint(3, 14, 700, further=Footprint(2, 2, 100), server=Footprint(1, 3, 10))
    assert alone.of(1, 3) == Footprint(5, 20, 720)
    assert alone.of(11, 3) == Footprint(3 + 20 + 22, 14 + 20 + 66, 700 + 1000 + 220)
    assert Footprint(3, 14, 700).of(1, 3) == Footprint(3, 14, 700)
    scenarios = (resolve("kafka-fixed", {"client": "native", "server.count": count}) for count in (1, 3))
    one, three = (needs(each, clients=100, groups=2, fork_window=128, publishers=1) for each in scenarios)
    assert three.threads - one.threads == 2 * 120 + 2 * 101  # the servers' own, and those of their clients


@pytest.mark.parametrize(("subscriptions", "listeners"), [("one", 16_667), ("all", 100_000)])
def test_a_publisher_of_zmq_keeps_something_of_each_of_its_listeners(subscriptions: str, listeners: int) -> None:
    changes = {"client": "zmtp", "publishers": 6, "settings.subscriptions": subscriptions}
    packed = {"native.clients_per_process": 3000}
    few, many = (
        needs(resolve("zmqfixed", changes | packed), clients=clients, groups=12, fork_window=128).memory_bytes
        for clients in (0, 100_000)
    )
    subscribers = 34 * (700_000 + 2999 * 20_000) + 100_000 * 4_000 + 34 * 60_000
    assert many - few == pytest.approx(subscribers + 6 * listeners * 30_000, rel=0.01)


@pytest.mark.parametrize(
    ("system", "client"),
    [(name, client) for name, spec in plugins.systems().items() for client in spec.identity.implementations],
)
def test_a_scenario_asks_for_the_memory_that_its_clients_take(system: str, client: str) -> None:
    implementation = plugins.system(system).identity.implementations[client]
    files = {name: load_scenario(name) for name in scenarios()}
    # A grid that every client can do.
    name = next(n for n, s in files.items() if s.system == system and not s.sweep.decided and s.client != "native")
    chosen = {"client": client, **({"settings.messages": 1000} if implementation.program == "tool" else {})}
    scenario = load_scenario(name, chosen)
    footprint, packed = implementation.footprint, scenario.native.clients_per_process
    assert packed == implementation.packed
    assert scenario.subscriber.demand.mem_per_client == footprint.of(packed).memory_bytes / packed / 1e6
    assert (scenario.subscriber.demand.mem_per_client < 0.1) == (packed > 1)
    explicit = load_scenario(name, chosen | {"subscriber.demand.mem_per_client": 50.0})
    assert explicit.subscriber.demand.mem_per_client == 50.0


def test_every_server_on_this_machine_counts_and_one_of_the_users_does_not() -> None:
    none, one, three = (
        needs(resolve("kafka-fixed", more), clients=10, groups=4, fork_window=128)
        for more in ({"kafka.bootstrap": "h:9092"}, {}, {"server.count": 3})
    )
    assert (one.processes - none.processes, three.processes - none.processes) == (2, 9)
    assert three.memory_bytes - none.memory_bytes == 3 * (one.memory_bytes - none.memory_bytes) > 0


@pytest.mark.parametrize(
    ("name", "more", "gigabytes", "guessed"),
    [
        ("zmqfixed", {}, 0.0, False),
        ("kafka-fixed", {"kafka.bootstrap": "h:9092"}, 0.0, False),
        ("kafka-fixed", {}, 1e6 * (2 * 60 + 10) * 138e-9, False),
        ("kafka-fixed", {"settings.message_size": 990}, 1e6 * (2 * 60 + 10) * 1000e-9, False),
        ("kafka-fixed", {"server.count": 3, "kafka.replication_factor": 3}, 3 * 1e6 * (2 * 60 + 10) * 138e-9, False),
        ("kafka-fixed", {"settings.rate": "max"}, 0.4 * (2 * 60 + 10), True),
        ("kafka-rate", {}, 0.4 * (2 * 5 + 10), True),
    ],
)
def test_servers_of_our_own_keep_two_steps_on_disk(
    name: str, more: dict[str, object], gigabytes: float, guessed: bool
) -> None:
    given = {"kafka-fixed": {"sweep.duration_s": 60.0, "settings.rate": 1e6}, "kafka-rate": {"sweep.duration_s": 5.0}}
    scenario = resolve(name, {**given.get(name, {}), **more})
    needed = needs(scenario, clients=10, groups=4, fork_window=128)
    assert needed.disk_bytes == pytest.approx(gigabytes * 1e9)
    if gigabytes:
        assert needed.disk_guessed == guessed


def test_a_guess_of_the_disk_skips_no_row() -> None:
    machine = replace(read_limits(), disk_available_bytes=1)
    guess, known = (
        needs(resolve("kafka-fixed", {"settings.rate": rate}), clients=2, groups=2, fork_window=128)
        for rate in ("max", 100.0)
    )
    for needed, severe in ((guess, False), (known, True)):
        assert [s.severe for s in shortages(machine, needed) if "disk" in s.what] == [severe]


def test_the_disk_is_that_of_the_run_also_where_its_folder_is_not_there_yet(tmp_path: Path) -> None:
    assert read_limits(tmp_path / "runs" / "run").disk_available_bytes == pytest.approx(
        shutil.disk_usage(tmp_path).free, rel=0.1
    )


@pytest.mark.parametrize(
    ("scenario", "replaced", "seconds"),
    [
        ("zmqfixed", {"sweep.clients": (99,)}, 0.4),
        ("zmqfixed", {"sweep.clients": (9_999,)}, 40.0),
        ("kafka-fixed", {"sweep.clients": (9, 99)}, 10.4),
        ("kafka-fixed", {"sweep.clients": (99,), "server.count": 4}, 11.4),
        ("kafka-fixed", {"sweep.clients": (99,), "kafka.bootstrap": "b:1"}, 3.4),
    ],
)
def test_the_expected_start_counts_servers_rows_and_processes(
    scenario: str, replaced: dict[str, object], seconds: float
) -> None:
    assert expected_start_s(resolve(scenario, replaced), cores=2) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("scenario", "client", "traffic", "by_message", "ordered_keys"),
    [
        ("zmqfixed", "pyzmq", {"topics": 10}, False, 0),
        ("zmqfixed", "pyzmq", {"topics": 10, "topics_per_client": 2}, True, 0),
        ("zmqfixed", "native", {"topics": 10, "topics_per_client": 2}, True, 0),
        ("zmqfixed", "native", {"topics": 10, "topics_per_client": 10}, False, 0),
        ("kafka-fixed", "native", {"topics": 10}, False, 0),
        ("kafka-fixed", "native", {"keys": 7}, True, 7),
        ("kafka-fixed", "kafka-python", {"topics": 10}, True, 0),
        ("kafka-fixed", "confluent-kafka", {"topics": 10}, True, 0),
        ("kafka-fixed", "confluent-kafka", {"topics": 10, "keys": 7}, True, 70),
    ],
)
def test_an_account_by_message_takes_a_byte_for_each_message_and_eight_for_each_key(
    scenario: str, client: str, traffic: dict[str, int], by_message: bool, ordered_keys: int
) -> None:
    one = {"client": client, "publishers": 3, "settings.rate": 2000, "sweep.duration_s": 50}
    several = one | {f"settings.{name}": value for name, value in traffic.items()}
    resolved = [resolve(scenario, each) for each in (one, several)]
    one_topic, found = (needs(each, 100, 4, 128).memory_bytes - ahead_bytes(each, 3, 100) for each in resolved)
    assert found - one_topic == 100 * 3 * (2000 * 50 * by_message + 8 * ordered_keys)


def test_a_footprint_knows_whether_messages_of_several_topics_keep_their_order() -> None:
    assert not ConsumerTransport.keeps_order
    kafka = resolve("kafka-fixed", {}).system.identity.implementations
    assert [kafka[name].ordered_topics for name in ("kafka-python", "confluent-kafka", "native")] == [
        False,
        False,
        True,
    ]
