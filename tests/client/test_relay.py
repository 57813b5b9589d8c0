"""Where a relay listens, and what it costs to be one."""

from __future__ import annotations

import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq

from hydra.client.relay import bind

pytestmark = pytest.mark.tier("test")


@pytest.fixture
def router() -> Iterator[zmq.Socket[bytes]]:
    with zmq.Context() as context, context.socket(zmq.ROUTER) as socket:
        socket.linger = 0
        yield socket


def test_only_this_user_may_enter_the_folder(router: zmq.Socket[bytes]) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as short:  # a test's own folder has a long name
        path = bind(router, short)
        assert path.parent.parent == Path(short)
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert path.is_socket()


def test_a_long_name_is_not_used(router: zmq.Socket[bytes], tmp_path: Path) -> None:
    long = tmp_path / ("x" * 80)
    long.mkdir()
    path = bind(router, str(long))
    assert list(long.iterdir()) == []
    assert len(str(path)) <= 80
    path.unlink()
    path.parent.rmdir()


def test_a_folder_that_is_not_there_cannot_be_used(router: zmq.Socket[bytes], tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        bind(router, str(tmp_path / "missing"))
