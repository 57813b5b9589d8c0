"""What the duty cycle obeys, and when."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import pytest

from hydra.client.control_loop import serve
from hydra.control.control_client import ControlClient
from hydra.wire.messages import FromController, Ping, Quit, Stop

STOP, LATER = Stop(epoch=1, number=3, stop_at_ns=5), Stop(epoch=2, number=3, stop_at_ns=5)


class Waiting:
    """The end of a channel at which these messages wait, and then ``quit``.

    None: nothing does any more, until the loop waits itself.
    """

    def __init__(self, messages: Sequence[FromController | None]) -> None:
        self._messages = [*messages, Quit()]

    def receive(self, _: float) -> FromController | None:
        return self._messages.pop(0)


@pytest.mark.parametrize(
    ("waiting", "obeyed"),
    [
        ([STOP], [STOP]),
        ([STOP, None], [STOP]),
        ([STOP, STOP, STOP, None], [STOP]),  # repeated while it was obeying
        ([STOP, None, STOP, None], [STOP, STOP]),  # repeated: the answer may have been lost
        ([STOP, LATER, STOP, None], [STOP, LATER, STOP]),
        ([Ping(time_ns=1), Ping(time_ns=2), None], [Ping(time_ns=1), Ping(time_ns=2)]),
    ],
)
def test_every_command_is_obeyed_but_for_its_repetitions(
    waiting: Sequence[FromController | None], obeyed: Sequence[FromController]
) -> None:
    done: list[FromController] = []
    serve(cast(ControlClient, Waiting(waiting)), lambda: 0.0, done.append)
    assert done == obeyed
