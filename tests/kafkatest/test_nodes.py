"""The nodes of a Kafka cluster: endpoints, the settings and the memory of each, and what they begin with."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hydra.kafkatest import program
from hydra.kafkatest.broker_memory import heap_mb, heap_options, memory_bytes, shortage
from hydra.kafkatest.jars import Jars, Java, conf_folder
from hydra.kafkatest.nodes import Node, bootstrap, parse, placed, settings, sharing, victim
from hydra.kafkatest.program import Installation

JAVA, JARS = Java("java", "21"), Jars("9.9.9", Path("jars"))
A, B, C = Node("10.0.0.6", 31000, 31001), Node("10.0.0.7", 31000, 31001), Node("node-c", 9092, 9093)
D = Node("node-d", 9092, 9093)
THREE = "1@10.0.0.6:31001,2@10.0.0.7:31001,3@node-c:9093"


@pytest.mark.parametrize(
    ("nodes", "number", "voters"),
    [
        ([A], 1, "1@10.0.0.6:31001"),
        ([A, B], 1, "1@10.0.0.6:31001"),
        ([A, B], 2, "1@10.0.0.6:31001"),
        ([A, B, C], 3, THREE),
        ([A, B, C, D], 3, THREE),
        ([A, B, C, D], 4, THREE),
    ],
)
def test_every_node_is_told_of_all_and_listens_where_it_said(nodes: list[Node], number: int, voters: str) -> None:
    own = nodes[number - 1]
    lines = Installation(JAVA, JARS, conf_folder()).properties(settings(nodes, number)).splitlines()
    found = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
    assert found["node.id"] == str(number)
    assert found["controller.quorum.voters"] == voters
    votes = f"{number}@" in voters
    assert found["process.roles"] == ("broker,controller" if votes else "broker")
    controller = f",CONTROLLER://{own.host}:{own.controller_port}" if votes else ""
    assert found["listeners"] == f"PLAINTEXT://{own.host}:{own.port}{controller}"
    assert found["advertised.listeners"] == f"PLAINTEXT://{own.bootstrap}"
    assert found["log.dirs"] == program.DATA


def test_clients_and_brokers_use_tls_and_controllers_do_not() -> None:
    found = settings([A, B, C], 1, tls=True)
    assert found["listeners"] == f"SSL://{A.bootstrap},CONTROLLER://{A.host}:{A.controller_port}"
    assert found["protocol"] == "SSL"


def test_clients_are_given_every_node() -> None:
    assert bootstrap([A, B, C]) == "10.0.0.6:31000,10.0.0.7:31000,node-c:9092"


@pytest.mark.parametrize("node", [A, C])
def test_an_endpoint_is_read_as_it_was_written(node: Node) -> None:
    assert parse(node.endpoint) == node


@pytest.mark.parametrize("text", ["", "h:1", "h:1,g:2", "h:1,h:2,g:3", "h:1,h:2,h:3,h:4", "h:x,h:2", ":1,:2", "tcp"])
def test_what_is_no_endpoint_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse(text)


def test_storage_is_given_the_identity_of_its_node(tmp_path: Path) -> None:
    (tmp_path / "storage").mkdir()
    written = "version=1\ncluster.id=old\nnode.id=1\ndirectory.id=old\n"
    (tmp_path / "storage" / "meta.properties").write_text(written)
    program.copy_storage(tmp_path / "storage", tmp_path / "data", "fresh", 3)
    lines = (tmp_path / "data" / "meta.properties").read_text().splitlines()
    assert lines[:3] == ["version=1", "cluster.id=fresh", "node.id=3"]
    assert lines[3] != "directory.id=old"
    assert (tmp_path / "storage" / "meta.properties").read_text() == written


@pytest.mark.parametrize(
    ("partitions", "replicas", "brokers", "expected"),
    [
        (1, 1, 1, [[1]]),
        (3, 1, 3, [[3], [1], [2]]),
        (3, 3, 3, [[3, 1, 2], [1, 2, 3], [2, 3, 1]]),
        (5, 2, 4, [[4, 1], [1, 2], [2, 3], [3, 4], [4, 1]]),
    ],
)
def test_partitions_are_spread_evenly_from_the_last_broker_on(
    partitions: int, replicas: int, brokers: int, expected: list[list[int]]
) -> None:
    assert placed(partitions, replicas, brokers) == expected


@pytest.mark.parametrize(
    ("nodes", "leader", "dies"), [([A, B, C], A, A), ([A, B, C], C, C), ([A, B], B, B), ([A, B], A, B)]
)
def test_the_leader_is_killed_unless_it_is_the_only_voter(nodes: list[Node], leader: Node, dies: Node) -> None:
    assert victim(nodes, leader.bootstrap) == dies.bootstrap


def test_brokers_share_memory_with_those_on_their_host() -> None:
    nodes = [A, Node("10.0.0.6", 31002, 31003), C]
    assert [sharing(nodes, number) for number in (1, 2, 3)] == [2, 2, 1]


@pytest.mark.parametrize(("brokers", "heap"), [(1, 1024), (3, 1024), (4, 768), (6, 512), (9, 320), (40, 256)])
def test_heaps_shrink_with_the_number_of_brokers_on_a_machine(brokers: int, heap: int) -> None:
    assert heap_mb(brokers) == heap
    assert heap_options(brokers) == [f"-Xms{heap // 2}m", f"-Xmx{heap}m"]


def test_nine_brokers_fit_into_six_gigabytes() -> None:
    assert 9 * memory_bytes(9) <= 6e9
    assert shortage(9, 6_000_000_000) == ""


def test_brokers_that_do_not_fit_are_told_with_the_arithmetic() -> None:
    text = shortage(9, 4_000_000_000)
    assert "9 brokers × (320 MiB heap + 260 MiB) = 5.5 GB" in text
    assert "page cache" in text
    assert "4.0 GB of memory are free" in text


@pytest.mark.parametrize(("may_write", "where"), [(True, "unpacked"), (False, "cache/hydra/kafka-9.9.9")])
def test_what_brokers_begin_with_is_kept_where_one_may_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, may_write: bool, where: str
) -> None:
    conf = tmp_path / "conf"
    conf.mkdir()
    (conf / program.PROPERTIES).write_text("node.id=1\n")
    (conf / "jvm.options").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(os, "access", lambda *_: may_write)
    monkeypatch.setattr(Installation, "_format", lambda _, folder: (folder / program.DATA).mkdir())
    monkeypatch.setattr(Installation, "_train", lambda *_: None)
    made = Installation(JAVA, Jars("9.9.9", tmp_path / "unpacked" / "jars"), conf).template()
    assert made.storage.parent.parent == tmp_path / where
    assert made.storage.is_dir()
    assert made.archive is None
