"""The test's SUB socket at the publisher of a run of another process."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter

import psutil
import zmq

from hydra.wire.data_message import HEADER
from tests.integration.command import Background
from tests.suite.waiting import LONG_S, SOON_S, wait_until

QUIET_S = 0.3


class SubWitness:
    """Counts, by epoch, every message that a publisher's endpoint gives, and keeps their sequences."""

    def __init__(self, endpoint: str, prefix: bytes = b"") -> None:
        self.messages: Counter[int] = Counter()
        self.sequences: dict[int, set[int]] = {}
        self._heard_s = time.monotonic()
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._socket = self._context.socket(zmq.SUB)
        self._socket.linger = 0
        self._socket.rcvhwm = 0
        self._socket.subscribe(prefix)
        self._prefix = prefix
        self._socket.connect(endpoint)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while not self._closing.is_set():
            if not self._socket.poll(50):
                continue
            self._heard_s = time.monotonic()
            with contextlib.suppress(zmq.Again):
                while True:
                    epoch, _, sequence, _ = HEADER.unpack_from(self._socket.recv(zmq.NOBLOCK), len(self._prefix))
                    self.messages[epoch] += 1
                    self.sequences.setdefault(epoch, set()).add(sequence)

    def quiet(self) -> bool:
        """Whether nothing has come for a while: what was on its way is here."""
        return time.monotonic() - self._heard_s > QUIET_S

    def close(self) -> None:
        """Counts no more."""
        self._closing.set()
        self._thread.join(SOON_S)
        self._context.destroy(linger=0)


def data_endpoint(command: Background) -> str:
    """Where the publisher of a ``hydra`` command listens, once it does."""

    def listening() -> list[tuple[str, int]]:
        found: list[tuple[str, int]] = []
        for process in command.clients("zmq-pub"):
            with contextlib.suppress(psutil.Error):
                found += [c.laddr for c in process.net_connections("tcp") if c.status == psutil.CONN_LISTEN]
        return found

    ((host, port),) = wait_until(listening, "a publisher that listens", LONG_S)
    return f"tcp://{host}:{port}"
