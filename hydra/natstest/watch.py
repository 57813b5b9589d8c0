"""Notices, while a step goes on, that none of the user's servers is there any more."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Sequence
from typing import Final

from hydra.system.worker_thread import Background

EVERY_S: Final = 1.0
ANSWER_WITHIN_S: Final = 1.0
GONE_AFTER_S: Final = 3.0


class Watch:
    """Tries to connect to the servers, again and again on a thread of its own, until it is closed.

    Where one of several is gone clients go to another; that is no failure of the step.

    Arguments:
        servers: ``host:port`` of each.
    """

    def __init__(self, servers: Sequence[str]) -> None:
        self._servers = tuple(servers)
        self._gone = ""
        self._closed = threading.Event()
        self._thread = Background()
        self._thread.submit(self._run)

    def failure(self) -> str:
        """That all are gone, or ""; returns at once. It stays so when they come back: data may have gone with them."""
        return self._gone

    def close(self) -> None:
        """Ends the watch; the thread ends by itself soon."""
        self._closed.set()
        self._thread.close()

    def _run(self) -> None:
        heard = time.monotonic()
        while not self._closed.wait(EVERY_S):
            if any(map(_listens, self._servers)):
                heard = time.monotonic()
            elif time.monotonic() - heard >= GONE_AFTER_S:
                self._gone = f"NATS at {','.join(self._servers)} is gone"
                return


def _listens(server: str) -> bool:
    """Whether its host takes a connection: the kernel answers for a process that is busy."""
    host, _, port = server.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), ANSWER_WITHIN_S).close()
    except (OSError, UnicodeError):  # the second: no host can have this name
        return False
    return True
