"""A whole run of NATS on the user's server; those on embedded ones are in ``tests/integration``."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from hydra.native.build import find
from hydra.natstest.settings import NatsAccess
from hydra.natstest.streams import JetStreams
from hydra.system.embedded_server import EmbeddedServer
from tests.integration.command import assert_all_arrived, hydra, table

pytestmark = [pytest.mark.tier("test"), pytest.mark.usefixtures("needs_nats")]

FIXED = ("nats-fixed", "--rate", 200, "--set", "warmup_s=0")


def test_modes_are_varied_on_the_users_server_and_nothing_is_left_there(tmp_path: Path, server: EmbeddedServer) -> None:
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
    with closing(JetStreams(NatsAccess(servers=[server.address]))) as streams:
        assert not [name for name in streams.names() if name.startswith("hydra-run-")]
    assert not [*run.glob("nats-*"), *run.glob("server-*")]
