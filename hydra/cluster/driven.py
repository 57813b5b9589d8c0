"""A process that holds an engine's connection to its cluster: where clients are served, nothing waits for a network."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from hydra.cluster.channel import Channel, Message


class Driver:
    """The process and the channel to it: the engine says calls, the process what has happened.

    Attributes:
        process: it ends by itself when the engine hangs up, having ended what belongs to the run.
    """

    def __init__(self, module: str, log: Path) -> None:
        """Starts ``python -m MODULE FD``, FD being its end of a socket pair.

        Args:
            module: its program.
            log: where it writes.
        """
        self._module, self._log = module, log
        ours, theirs = socket.socketpair()
        self._channel = Channel(ours)
        try:
            with theirs, log.open("ab") as output:
                self.process = subprocess.Popen(
                    [sys.executable, "-m", module, str(theirs.fileno())],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    pass_fds=(theirs.fileno(),),
                    start_new_session=True,
                )
        except BaseException:
            self._channel.close()
            raise

    @property
    def closed(self) -> bool:
        """Whether it has ended, or nobody speaks to it any more."""
        return self._channel.closed

    def ended(self) -> str:
        """What to say of an end that nobody asked for."""
        return f"the process {self._module} ended with {self.process.poll()}; see {self._log}"

    def send(self, calls: Iterable[Message]) -> None:
        """Sends these, and what could not go before."""
        for call in calls:
            self._channel.send(call)
        self._channel.flush()

    def receive(self, wait_s: float = 0.0) -> list[Message]:
        """What it has said; waits for something if there is a time for that."""
        if wait_s:
            self._channel.wait(wait_s)
        return list(self._channel.receive())

    def close(self) -> None:
        """Hangs up, and gives it a second to end."""
        self._channel.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(1.0)
