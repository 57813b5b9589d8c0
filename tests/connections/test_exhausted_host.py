"""Subscribers whose own host has no file, buffer or memory left for a connection: no server has refused them."""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from hydra.model.machine import LOCAL_LIMITS
from tests.connections.servers import mosquitto, nats
from tests.connections.words import NATS_PY, PAHO, SMALL, native
from tests.integration.command import Hydra, table

pytestmark = [pytest.mark.tier("all"), pytest.mark.usefixtures("needs_nats")]

KAFKA_NATIVE = ("--client", "native")
Started = Callable[[], contextlib.AbstractContextManager[str]]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Makes ``connect`` of subscribers fail."""
    found = tmp_path_factory.mktemp("exhausted") / "exhausted_host.so"
    source = Path(__file__).with_name("exhausted_host.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", found, source, "-ldl"], check=True)
    return found


@pytest.fixture
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], Started]:
    """Starts the server of a system; the value is its address."""
    started: dict[str, Started] = {
        "nats": lambda: nats(tmp_path / "server"),
        "mqtt": lambda: mosquitto(tmp_path / "server"),
        "kafka": lambda: contextlib.nullcontext(request.getfixturevalue("broker").bootstrap),
    }
    return started.__getitem__


@pytest.mark.parametrize(
    ("system", "implementation", "limit"),
    [
        ("nats", NATS_PY, "ENFILE"),
        ("nats", native("nats"), "ENOBUFS"),
        ("mqtt", PAHO, "ENOMEM"),
        ("mqtt", native("mqtt"), "ENFILE"),
        ("kafka", ("--client", "kafka-python"), "ENOBUFS"),
        ("kafka", ("--client", "confluent-kafka"), "ENFILE"),
        ("kafka", native("kafka") and KAFKA_NATIVE, "ENOMEM"),
    ],
    ids=["nats-py", "nats-native", "paho-mqtt", "mqtt-native", "kafka-python", "confluent-kafka", "kafka-native"],
)
def test_a_host_at_a_limit_of_its_own_has_refused_itself(
    tmp_path: Path,
    library: Path,
    server: Callable[[str], Started],
    system: str,
    implementation: tuple[str, ...],
    limit: str,
) -> None:
    run = tmp_path / "run"
    with server(system)() as address:
        flag = "--bootstrap" if system == "kafka" else "--servers"
        words = (f"{system}-connections", *SMALL, "--connect-within", "2", *implementation, "--clients", "2")
        preloaded = {
            "LD_PRELOAD": str(library),
            "EXHAUSTED_PORT": address.rpartition(":")[2],
            "EXHAUSTED_ERROR": str(getattr(errno, limit)),
        }
        done = subprocess.run(
            [*Hydra, *words, flag, address, "--out", str(run)],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, **preloaded},
        )
    assert done.returncode == 0, done.stderr
    (row,) = table(run)
    assert int(row["never_connected"]) == 2 <= int(row["connect_local"])
    assert (row["connect_refused"], row["connect_timed_out"], row["connect_local_why"]) == ("0", "0", limit)
    assert row["local_limit"] == "subscriber hosts"
    assert LOCAL_LIMITS[limit].remedy in done.stdout
    assert "raise the server's" not in done.stdout
