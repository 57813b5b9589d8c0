"""What a run leaves on the user's cluster, however it ends."""

from __future__ import annotations

import contextlib
import os
import pty
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from hydra.client.server_interface import free_ports
from hydra.events.run_events import WindowOpened
from hydra.kafkatest.broker import LocalBroker
from hydra.kafkatest.topics import Topics
from tests.integration.command import LIFELINE_S, Hydra, all_ended, background, events, hydra, steps, table
from tests.suite.waiting import LONG_S, SOON_S, wait_until

pytestmark = pytest.mark.tier("all")


@pytest.fixture(scope="module")
def bootstrap(needs_kafka: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A cluster of the user's, with no topic on it."""
    with LocalBroker(tmp_path_factory.mktemp("kafka") / "broker", warm=False) as broker:
        yield broker.bootstrap


def run_on(bootstrap: str, run: Path, clients: str) -> tuple[object, ...]:
    quick = ("--rate", 200, "--duration", 1, "--client", "confluent-kafka", "--set", "warmup_s=0")
    return ("kafka-fixed", *quick, "--clients", clients, "--bootstrap", bootstrap, "--out", run)


def topics(bootstrap: str) -> list[str]:
    """Hydra's tasks on the cluster."""
    with contextlib.closing(Topics(bootstrap, {}, "")) as present:
        return [t for t in present.describe().topics if t.startswith("hydra-")]


def test_the_topic_of_a_killed_run_is_removed_by_whoever_comes_next_and_not_before(
    tmp_path: Path, bootstrap: str
) -> None:
    # Any folder gives a name that Kafka takes.
    run = tmp_path / "my größte run"
    with background(*run_on(bootstrap, run, "2,3")) as command:
        command.until(lambda: events(run, WindowOpened), "the first step")
        # It goes no further: on a busy machine it might be over before the next command has begun.
        command.process.suspend()
        (topic,) = topics(bootstrap)
        kept = hydra("kafka-clean", "--bootstrap", bootstrap).stdout
        assert kept.startswith(f"kept {topic}: the owner is process {command.process.pid} on ")
        family = command.family()
        command.process.kill()
        command.process.wait(SOON_S)
        wait_until(lambda: all_ended(family), "the end of every client", LIFELINE_S)
    assert topics(bootstrap) == [topic]
    resumed = hydra("kafka-fixed", "--resume", run)
    assert f"removed {topic}" in resumed.stderr
    assert topics(bootstrap) == []
    assert [status for _, status in steps(run)] == ["ok", "ok"]
    assert hydra("kafka-clean", "--bootstrap", bootstrap).stdout == f"{bootstrap} has no topic of Hydra\n"


def at_a_terminal(*arguments: object, closed: bool = False) -> tuple[int, psutil.Popen]:
    """The other end of a terminal, which may be closed before the command begins, and the command there."""
    own, others = pty.openpty()
    if closed:
        os.close(own)
    # Under nohup, which the tests may run under, a command would ignore that its terminal is closed.
    words = ["env", "--default-signal=HUP", *Hydra, *map(str, arguments)]
    process = psutil.Popen(words, stdin=others, stdout=others, stderr=others, start_new_session=True)
    os.close(others)
    return own, process


def test_a_closed_terminal_ends_a_run_in_order(run: Path, bootstrap: str) -> None:
    # More rows than are measured: the run is not over when its terminal is closed.
    own, process = at_a_terminal(*run_on(bootstrap, run, "2,3,4,5,6,7,8,9"))
    try:
        wait_until(lambda: len(steps(run)) >= 1, "the first row", LONG_S)
        family = process.children(recursive=True)
        # From here on no program can be written to: an error of the shell and of the kernel.
        os.close(own)
        for _ in range(2):
            process.send_signal(signal.SIGHUP)
        assert process.wait(LONG_S) == 130
        wait_until(lambda: all_ended(family), "the end of every client", LIFELINE_S)
    finally:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    assert topics(bootstrap) == []
    assert table(run)[0]["status"] == "ok"


def test_a_terminal_that_is_closed_before_the_output_is_an_interruption() -> None:
    _, process = at_a_terminal("--help", closed=True)
    assert process.wait(LONG_S) == 130


@pytest.mark.parametrize(
    ("listens", "arguments"),
    [
        pytest.param(True, ("kafka-fixed", "--bootstrap", "{}"), id="mute-kafka"),
        pytest.param(False, ("zmqfixed", "--master", "zk://{}/mesos"), id="no-zookeeper"),
    ],
)
def test_an_address_where_nobody_answers_is_one_line_and_nothing_is_made(
    tmp_path: Path, listens: bool, arguments: tuple[str, ...]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        port = mute.getsockname()[1] if listens else free_ports("127.0.0.1", 1)[0]
        done = hydra(*(a.format(f"127.0.0.1:{port}") for a in arguments), "--out", tmp_path / "run", expect=2)
    (line,) = done.stderr.splitlines()
    assert f"127.0.0.1:{port}" in line
    assert list(tmp_path.iterdir()) == []
