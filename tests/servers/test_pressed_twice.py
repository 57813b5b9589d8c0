"""Ctrl-C twice within a second, at three moments of a run: nothing of the run stays on the user's servers."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from hydra.errors import EXIT_INTERRUPTED
from hydra.kafkatest.broker import LocalBroker
from hydra.kafkatest.cluster_calls import PREFIX
from hydra.kafkatest.topics import Topics
from hydra.mqtttest.program import MosquittoJoin, MosquittoProgram
from hydra.mqtttest.settings import MqttAccess
from hydra.mqtttest.system import SingleServer, forget
from hydra.natstest.program import NatsProgram
from hydra.natstest.settings import NatsAccess
from hydra.natstest.streams import JetStreams
from hydra.natstest.system import NatsCluster
from hydra.system.local_server import LocalServer
from tests.suite.waiting import LONG_S

pytestmark = pytest.mark.tier("all")

MOMENTS = {"start": " into ", "step": "step 1 of 2", "end": "step 2 of 2"}
"""What the run prints before the first press."""
GAPS_S = (0.05, 0.1, 0.5)
"""The seconds between the two presses."""

Server = tuple[str, Callable[[], int]]
"""The address, and how many things of Hydra are on the server."""


@pytest.fixture(scope="module")
def kafka(broker: LocalBroker) -> Server:
    def left() -> int:
        with closing(Topics(broker.bootstrap, {}, "")) as topics:
            return sum(name.startswith(f"{PREFIX}-press") for name in topics.describe().topics)

    return broker.bootstrap, left


@pytest.fixture(scope="module")
def nats(needs_nats: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with LocalServer(NatsProgram(), NatsCluster(), tmp_path_factory.mktemp("nats") / "server") as running:

        def left() -> int:
            with closing(JetStreams(NatsAccess(servers=[running.address]))) as streams:
                streams.reach(jetstream=True)
                return len(streams.names())

        yield running.address, left


@pytest.fixture(scope="module")
def mqtt(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    limits = MosquittoJoin(max_queued_messages=1000, max_inflight_messages=100)
    with LocalServer(MosquittoProgram(), SingleServer(limits), tmp_path_factory.mktemp("mqtt") / "server") as running:
        host, _, port = running.address.rpartition(":")
        yield running.address, lambda: forget(MqttAccess(host=host, port=int(port)), "hydra")


COMMANDS = {
    "kafka": ("kafka-fixed", "--servers"),
    "nats": ("nats-fixed", "--set", "settings.mode=jetstream", "--servers"),
    "mqtt": ("mqtt-fixed", "--set", "settings.retain=true", "--servers"),
}


@pytest.mark.parametrize(
    ("system", "moment", "gap_s"),
    # Each gap once with each system and once at each moment.
    [
        (system, moment, GAPS_S[(row + column) % len(GAPS_S)])
        for row, system in enumerate(COMMANDS)
        for column, moment in enumerate(MOMENTS)
    ],
)
def test_nothing_stays_on_the_users_servers(
    system: str, moment: str, gap_s: float, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    address, left = request.getfixturevalue(system)
    flags = [
        "--clients",
        "1,2",
        "--duration",
        "0.3",
        "--set",
        "warmup_s=0",
        "--plain",
        "--out",
        str(tmp_path / "press"),
    ]
    command = [sys.executable, "-m", "hydra.cli.main", *COMMANDS[system], address, *flags]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        assert run.stderr is not None
        messages = []
        for line in run.stderr:
            messages.append(line)
            if MOMENTS[moment] in line:
                break
        run.send_signal(signal.SIGINT)
        time.sleep(gap_s)  # noqa: TID251  # the time between the signals is what is tested
        run.send_signal(signal.SIGINT)
        _, rest = run.communicate(timeout=LONG_S)
    assert run.returncode == EXIT_INTERRUPTED, "".join([*messages, rest])
    assert "interrupted" in rest
    assert left() == 0
