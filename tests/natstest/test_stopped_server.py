"""A server of NATS that stands still for a part of the window."""

from __future__ import annotations

from pathlib import Path

import pytest

from hydra.system.local_server import LocalServer
from tests.truth.stopped_server import assert_not_clean, row_of

pytestmark = [pytest.mark.tier("all"), pytest.mark.usefixtures("needs_nats")]


def test_a_row_is_not_clean_in_which_the_server_stood_still(tmp_path: Path, own_server: LocalServer) -> None:
    assert own_server.pids is not None
    step = ("--implementation", "nats-py", "--clients", 2, "--rate", 50, "--duration", 8)
    servers = ("--servers", own_server.address)
    row = row_of(tmp_path / "run", own_server.pids[1], "nats-fixed", *step, *servers, stopped_s=3.0)
    assert_not_clean(row, 3.0)
