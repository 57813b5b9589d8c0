"""The planned ends of a server, and what the step records of them."""

from __future__ import annotations

from unittest.mock import Mock

from hydra.model import ServerRestart
from hydra.run.step_servers import ServerRestarts

from .contexts import context


def test_an_end_is_timed_before_the_kill() -> None:
    now_ns = 100
    system = Mock()

    killed = Mock(address="127.0.0.1:4222")

    def kill() -> Mock:
        nonlocal now_ns
        now_ns = 900
        return killed

    system.servers.kill.side_effect = kill
    restarts = ServerRestarts(context(system=system), (ServerRestart(1.0, 0.5),))
    restarts.look(0.9, lambda: now_ns)
    assert restarts.down_ns == []
    restarts.look(1.1, lambda: now_ns)
    assert restarts.down_ns == [100]
    restarts.look(1.5, lambda: now_ns)
    assert not killed.start.called
    restarts.look(1.6, lambda: now_ns)
    assert killed.start.called
