"""The duty cycle that every client runs: some work, then whatever the controller has to say."""

from __future__ import annotations

from collections.abc import Callable

from hydra.control.client import ControlClient
from hydra.control.protocol import FromController, Quit


def serve(control: ControlClient, work: Callable[[], float], obey: Callable[[FromController], None]) -> bool:
    """Works and obeys until told to quit (True), or until the controller has been silent for too long (False).

    Args:
        control: the client's end of the channel.
        work: does what is due now; returns for how many seconds the loop may wait for a command.
        obey: takes one command.
    """
    while True:
        message = control.receive(work())
        while message is not None:
            if isinstance(message, Quit):
                return True
            obey(message)
            message = control.receive(0)
        if control.silent():
            return False
