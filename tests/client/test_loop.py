"""What the duty cycle obeys, and when."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import pytest

from hydra.client.loop import serve
from hydra.control.client import ControlClient
from hydra.wire.messages import FromController, Ping, Quit, Stop

STOP, LATER = Stop(epoch=1, stop_at_ns=5), Stop(epoch=2, stop_at_ns=5)


class Waiting:
    """The end of a channel at which these messages wait; None: nothing does any more, until the loop waits itself."""

    def __init__(self, messages: Sequence[FromController | None]) -> None:
        self._messages = list(messages)

    def receive(self, _: float) -> FromController | None:
        return self._messages.pop(0)

    def gone(self) -> str:
        return "" if self._messages else "has ended"


@pytest.mark.parametrize(
    ("waiting", "obeyed", "told_to_quit"),
    [
        ([STOP, Quit()], [STOP], True),
        ([STOP, None], [STOP], False),
        ([STOP, STOP, STOP, None], [STOP], False),  # told again while it was obeying
        ([STOP, None, STOP, None], [STOP, STOP], False),  # told again: the answer may have been lost
        ([STOP, LATER, STOP, None], [STOP, LATER, STOP], False),
        ([Ping(time_ns=1), Ping(time_ns=2), None], [Ping(time_ns=1), Ping(time_ns=2)], False),
    ],
)
def test_every_command_is_obeyed_but_for_its_repetitions(
    waiting: Sequence[FromController | None], obeyed: Sequence[FromController], told_to_quit: bool
) -> None:
    done: list[FromController] = []
    assert serve(cast(ControlClient, Waiting(waiting)), lambda: 0.0, done.append) == told_to_quit
    assert done == obeyed
