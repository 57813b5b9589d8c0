"""A whole run of NATS on the user's server; those on local ones are in ``tests/integration``."""

from __future__ import annotations

import re
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from hydra.native.build import find
from hydra.natstest.program import PROGRAM
from hydra.natstest.settings import NatsAccess
from hydra.natstest.streams import JetStreams
from hydra.system.local_server import LocalServer
from hydra.wire.data_message import HEADER
from tests.integration.command import assert_all_arrived, hydra, table
from tests.suite.native_client import needs_native
from tests.suite.waiting import SOON_S
from tests.truth.topic_rows import TOPICS, assert_counted_alike, assert_every_topic

pytestmark = [pytest.mark.tier("test"), pytest.mark.usefixtures("needs_nats")]

FIXED = ("nats-fixed", "--rate", 200, "--set", "warmup_s=0")


def test_modes_are_varied_on_the_users_server_and_nothing_is_left_there(tmp_path: Path, server: LocalServer) -> None:
    run = tmp_path / "run"
    client = "nats-py" if find() is None else "native"
    hydra(
        *(*FIXED, "--implementation", client, "--servers", server.address, "--clients", 2, "--duration", 0.3),
        *("--consumer", "pull", "--set", 'sweep.vary={mode=["core","jetstream"]}', "--out", run),
    )
    rows = table(run)
    assert [row["mode"] for row in rows] == ["core", "jetstream"]
    for row in rows:
        assert (row["failed_clients"], row["slow_consumers"]) == ("0", "0")
        assert_all_arrived(row, 60)
    parts = (run / "table.md").read_text().splitlines()[4].split(" · ")
    assert parts[0] == "1 publisher → 2 subscribers"
    assert parts[3] == "core NATS, JetStream"
    assert re.fullmatch(r"your own nats-server [\d.]+", parts[-3])
    with closing(JetStreams(NatsAccess(servers=[server.address]))) as streams:
        assert not [name for name in streams.names() if name.startswith("hydra-run-")]
    assert not [*run.glob("nats-*"), *run.glob("server-*")]


@contextmanager
def heard(address: str, subject: str) -> Iterator[Counter[int]]:
    """Counts the messages of a subject by epoch: the protocol itself, without a library or any code of Hydra."""
    host, _, port = address.rpartition(":")
    counts: Counter[int] = Counter()
    with socket.create_connection((host, int(port)), SOON_S) as connection:
        connection.sendall(f'CONNECT {{"verbose":false}}\r\nSUB {subject} 1\r\nPING\r\n'.encode())
        lines = connection.makefile("rb")
        while lines.readline() != b"PONG\r\n":
            pass
        connection.settimeout(None)  # the run that sends the messages may begin late

        def read() -> None:
            while line := lines.readline():
                if line.startswith(b"MSG "):
                    message = lines.read(int(line.split()[-1]) + 2)[:-2]
                    counts[HEADER.unpack_from(message)[0]] += 1
                elif line.startswith(b"PING"):
                    connection.sendall(b"PONG\r\n")

        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        yield counts
        connection.shutdown(socket.SHUT_RDWR)
        thread.join(SOON_S)


@pytest.mark.parametrize(
    ("client", "mode", "subject"),
    [
        ("nats-py", (), "*.core.0"),
        ("nats-py", ("--mode", "jetstream", "--consumer", "pull"), "*.memory-topics.0"),
        pytest.param("native", (), "*.core.0", marks=[needs_native, pytest.mark.tier("all")]),
        pytest.param("native", ("--mode", "jetstream"), "*.memory-topics.0", marks=needs_native),
    ],
    ids=["core", "pulled", "native core", "native stream"],
)
def test_the_hottest_topic_has_as_many_messages_as_its_subscribers_got(
    tmp_path: Path, server: LocalServer, client: str, mode: tuple[str, ...], subject: str
) -> None:
    run = tmp_path / "run"
    words = ("nats-fixed", "--implementation", client, *TOPICS, *mode, "--set", "warmup_s=0")
    with heard(server.address, subject) as counts:
        hydra(*words, "--servers", server.address, "--out", run)
        assert_counted_alike(run, counts)


@pytest.mark.tier("all")
@pytest.mark.parametrize("client", ["nats-py", pytest.param("native", marks=needs_native)])
def test_a_pattern_has_all_subjects(tmp_path: Path, server: LocalServer, client: str) -> None:
    flags = ("--clients", 2, "--duration", 0.3, "--topics", 5, "--wildcard")
    modes = ("--set", 'sweep.vary={mode=["core","jetstream"]}', "--out", tmp_path / "run")
    hydra(*FIXED, "--implementation", client, *flags, *modes, "--servers", server.address)
    assert_every_topic(table(tmp_path / "run"), 5)


@pytest.mark.tier("all")
@pytest.mark.parametrize("client", ["nats-py", pytest.param("native", marks=needs_native)])
@pytest.mark.parametrize("consumer", ["push", "pull"])
def test_a_subscriber_has_several_subjects_of_a_stream_if_the_server_can_filter_them(
    tmp_path: Path, server: LocalServer, client: str, consumer: str
) -> None:
    run = tmp_path / "run"
    topics = ("--topics", 5, "--topics-per-client", 2, "--mode", "jetstream", "--consumer", consumer)
    words = (*FIXED, "--implementation", client, *topics, "--clients", 3, "--duration", 0.5, "--out", run)
    if [*map(int, server.versions[PROGRAM].split(".")[:2])] < [2, 10]:
        assert "use nats-server 2.10 or newer" in hydra(*words, "--servers", server.address, expect=2).stderr
        return
    hydra(*words, "--servers", server.address)
    (row,) = table(run)
    assert (row["lost"], row["extra"], row["unknown"], row["failed_clients"]) == ("0", "0", "0", "0")
    assert 0 < round(3 * float(row["total_rx"])) == int(row["copies_expected"]) < 3 * int(row["total_tx"])
