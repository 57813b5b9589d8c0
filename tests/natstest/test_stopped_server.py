"""A server of NATS that stands still for a part of the window."""

from __future__ import annotations

from pathlib import Path

import pytest

from hydra.system.embedded_server import EmbeddedServer
from tests.truth.stopped_server import assert_not_clean, row_of

pytestmark = pytest.mark.usefixtures("needs_nats")


@pytest.mark.parametrize(
    ("duration_s", "stopped_s"),
    [pytest.param(4, 2.0, marks=pytest.mark.tier("test")), pytest.param(8, 3.0, marks=pytest.mark.tier("all"))],
)
def test_a_row_is_not_clean_in_which_the_server_stood_still(
    tmp_path: Path, own_server: EmbeddedServer, duration_s: int, stopped_s: float
) -> None:
    assert own_server.pids is not None
    step = ("--implementation", "nats-py", "--clients", 2, "--rate", 50, "--duration", duration_s)
    servers = ("--servers", own_server.address)
    row = row_of(tmp_path / "run", own_server.pids[1], "nats-fixed", *step, *servers, stopped_s=stopped_s)
    assert_not_clean(row, stopped_s)
