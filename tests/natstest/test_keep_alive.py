"""Clients, and Hydra's own connection, answer a server's pings whatever they wait for; one that cannot is named."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import closing
from unittest.mock import AsyncMock, patch

import pytest
from nats.aio.client import Client
from nats.aio.errors import ErrStaleConnection

from hydra.client.server_interface import accepts, free_ports
from hydra.client.supervised_process import SupervisedProcess
from hydra.natstest.checked_client import CheckedClient
from hydra.natstest.program import find_server
from hydra.natstest.settings import NatsAccess
from hydra.natstest.streams import JetStreams
from hydra.wire.messages import Ready
from tests.conformance.bench import Bench, step_settings
from tests.natstest.conftest import PYTHON
from tests.natstest.ends import Core
from tests.servers.access_cases import HOST
from tests.suite.waiting import wait_until

CLIENT, ONE = 3, 100
STALE_AFTER_S = 7.0
"""More than the time after which this server ends a connection: that of two pings without an answer, and another."""


@pytest.fixture(scope="module")
def impatient(needs_nats: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server that pings every second, and ends a connection after three seconds without an answer."""
    folder = tmp_path_factory.mktemp("impatient")
    (port,) = free_ports(HOST, 1)
    streams = {"store_dir": str(folder / "streams")}
    reported = {"listen": f"{HOST}:{port}", "ping_interval": "1s", "ping_max": 2, "jetstream": streams}
    (folder / "server.conf").write_text(json.dumps(reported))
    running = SupervisedProcess(
        [find_server().path, "-c", str(folder / "server.conf")], folder, folder / "log", grace_s=0.0
    )
    try:
        wait_until(lambda: accepts(HOST, port), "the server")
        yield f"{HOST}:{port}"
    finally:
        running.stop()


@pytest.mark.tier("all")
def test_the_controllers_connection_answers_while_it_asks_nothing(impatient: str) -> None:
    with closing(JetStreams(NatsAccess(servers=[impatient]))) as streams:
        streams.reach(jetstream=True)
        until_s = time.monotonic() + STALE_AFTER_S
        wait_until(lambda: time.monotonic() > until_s, "the pings")
        assert streams.names() == []
        assert streams._connection.disconnects == 0


@pytest.mark.tier("all")
@pytest.mark.parametrize("rate", [None, 1.0], ids=["idle", "slow reader"])
def test_a_subscriber_answers_in_a_step_and_before_it(
    bench: Bench, nats_client: str, impatient: str, rate: float | None
) -> None:
    bench.launch(nats_client, "nats-sub", first_id=CLIENT)
    with closing(Core(impatient)) as core:
        settings = step_settings(receive_rate=rate)
        bench.configure_subscribers([CLIENT], 1, settings, publishers={ONE: ""}, progress_s=0.1, system=core.system())
        core.probe(1, publisher=ONE)
        bench.peer.heard(Ready, [CLIENT], epoch=1)
        window = bench.start([CLIENT], 1, STALE_AFTER_S)
        core.write(1, range(100), publisher=ONE)
        core.leave()
        bench.await_end(window)
        report = bench.subscriber_report(CLIENT, 1, {ONE: 100})
        assert report.ledgers[0].received == 100
        assert report.system == {"slow_consumers": 0, "dropped": 0, "disconnects": 0}


@pytest.mark.tier("all")
def test_a_subscriber_that_did_not_run_is_named(bench: Bench, impatient: str) -> None:
    """Of nats-py; libnats forgets the error before it calls back."""
    bench.launch(PYTHON, "nats-sub", first_id=CLIENT)
    with closing(Core(impatient)) as core:
        bench.configure_subscribers([CLIENT], 1, publishers={ONE: ""}, progress_s=0.1, system=core.system())
        core.probe(1, publisher=ONE)
        bench.peer.heard(Ready, [CLIENT], epoch=1)
        core.leave()
        window = bench.start([CLIENT], 1, STALE_AFTER_S)
        pid = bench.peer.process(CLIENT).pid
        os.kill(pid, signal.SIGSTOP)
        bench.await_end(window)
        os.kill(pid, signal.SIGCONT)
        report = bench.subscriber_report(CLIENT, 1, {ONE: 1}, quiet_s=1.0)
        reported = report.system or {}
        assert (reported["disconnects"], reported["lost_by_silence"]) == (1, 1)
        assert reported["lost_why"] == "this client did not answer the server's pings"


@pytest.mark.parametrize("reported", [True, False], ids=["the client was silent", "the server was silent"])
def test_silence_is_that_of_the_side_that_did_not_answer(reported: bool) -> None:
    client = CheckedClient()

    async def lose() -> None:
        await (client._process_err("stale connection") if reported else client._process_op_err(ErrStaleConnection()))

    with patch.object(Client, "_process_op_err", AsyncMock()):
        asyncio.run(lose())
    assert client.was_silent == reported
    assert ("server did not" in client.lost_why) == (not reported)
