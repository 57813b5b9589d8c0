"""The duty cycle that every client runs: some work, then whatever the controller has to say.

No client looks whether the other end is still there: it dies with its group's parent, which ends when its relay does.
"""

from __future__ import annotations

from collections.abc import Callable

from hydra.control.client import ControlClient
from hydra.wire.messages import FromController, Quit


def serve(control: ControlClient, work: Callable[[], float], obey: Callable[[FromController], None]) -> None:
    """Works and obeys until told to quit.

    A command that takes long may be given again meanwhile. Its answer is younger than those repetitions, so they are
    not obeyed: a configuration that fails after ten seconds would fail once more for each of them.

    Args:
        control: the client's end of the channel.
        work: does what is due now; returns for how many seconds the loop may wait for a command, infinity where nothing
            is due before one comes.
        obey: takes one command.
    """
    while True:
        message, obeyed = control.receive(work()), None
        while message is not None:
            if isinstance(message, Quit):
                return
            if message != obeyed:
                obey(message)
            message, obeyed = control.receive(0), message
