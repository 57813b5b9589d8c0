"""Kafka on a Mesos cluster: brokers are groups there, as clients are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hydra.config.user_folders import cache_folder
from hydra.events.group_events import Launched
from hydra.events.run_events import ServersUp
from tests.integration.command import assert_all_arrived, events, hydra, table
from tests.integration.secret import leaks, property_file
from tests.mesos.agent import PATH
from tests.mesos.cluster import Cluster

pytestmark = pytest.mark.tier("all")
pytest.importorskip("pymesos", reason="pip install ./shims/http-parser '.[mesos]'")

FIXED = ("kafka-fixed", "--client", "confluent-kafka", "--rate", 200, "--set", "warmup_s=0")


@pytest.fixture(scope="module")
def jars(needs_kafka: None) -> list[Path]:
    """This machine's cached jars, looked for before its cache is another one."""
    return list(cache_folder().glob("kafka-*"))


@pytest.fixture(scope="module", autouse=True)
def archive(jars: list[Path], cache_home: Path) -> None:
    """The archive's folder has the jars of this machine."""
    (cache_home / "hydra").mkdir(exist_ok=True)
    for kafka in jars:
        if not (cache_home / "hydra" / kafka.name).exists():
            (cache_home / "hydra" / kafka.name).symlink_to(kafka)


def test_a_broker_is_a_task_on_the_ports_that_its_agent_offered(cluster: Cluster, tmp_path: Path) -> None:
    run = tmp_path / "run"
    properties = ("--kafka-prop-file", property_file(tmp_path))
    hydra(*FIXED, "--clients", 3, "--duration", 1, "--master", cluster.address, "--out", run, *properties)
    (row,) = table(run)
    assert row["failed_clients"] == "0"
    assert_all_arrived(row, 200)
    launched = events(run, Launched)
    assert ["servers-1" in e for e in launched] == [True, *[False] * (len(launched) - 1)]
    infos = cluster.ask(lambda: [task.info for task in cluster.master.tasks()])
    (broker,) = (info for info in infos if info["name"].startswith("servers-"))
    variables = {v["name"]: v["value"] for v in broker["command"]["environment"]["variables"]}
    port, controller_port = variables["HYDRA_PORTS"].split(",")
    assert port != controller_port
    assert any(f"at {variables['HYDRA_DATA_HOST']}:{port} after" in text for text in events(run, ServersUp))
    assert set(cluster.states().values()) <= {"TASK_FINISHED", "TASK_KILLED"}
    # A master knows only what it received, and agents keep the clients' output: the password is in neither.
    assert not leaks(json.dumps(cluster.ask(lambda: cluster.master.calls), ensure_ascii=False).encode())
    texts = [path for path in (tmp_path / "mesos").rglob("std*") if path.is_file()]
    assert len(texts) >= 2 * len(infos)
    assert not [path for path in texts if leaks(path.read_bytes())]
    # Neither Kafka nor its data outlive the task.
    assert not list((tmp_path / "mesos").glob("*/slaves/**/server/"))


def test_an_agent_without_java_says_so_and_no_step_is_tried(cluster: Cluster, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    found = {program.name: program for folder in reversed(PATH.split(":")) for program in Path(folder).glob("*")}
    for name in found.keys() - {"java"}:
        (programs / name).symlink_to(found[name])
    for agent in cluster.agents:
        agent.environment["PATH"] = f"{agent.python}:{programs}"
    run = tmp_path / "run"
    done = hydra(*FIXED, "--clients", 2, "--duration", 1, "--master", cluster.address, "--out", run, expect=1)
    assert "the server servers-1 on agent-sub-" in done.stderr
    assert "a Kafka broker needs Java 17 or newer, and no java is on PATH" in done.stderr
    assert not table(run)


def test_brokers_that_fit_nowhere_are_refused_before_anything_is_launched(cluster: Cluster, tmp_path: Path) -> None:
    more = ("--set", "server.count=3", "--master", cluster.address, "--out", tmp_path / "run")
    done = hydra(*FIXED, "--clients", 2, *more, expect=2)
    assert "3 servers" in done.stderr
    assert "hostname MAX_PER 1 refuses 2 of 2" in done.stderr
    assert cluster.states() == {}


def test_with_a_cluster_of_the_user_no_broker_is_in_the_archive(tmp_path: Path) -> None:
    with_brokers = hydra("artifact", "kafka-fixed").stdout.split()[0]
    without = hydra("artifact", "kafka-fixed", "--bootstrap", "h:9092").stdout.split()[0]
    assert Path(with_brokers).stat().st_size > 2 * Path(without).stat().st_size
