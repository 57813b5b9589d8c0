"""The controller's side of NATS: a run's own streams, how far they go, and where it is written down which are there.

Every question to the servers is asked by a thread of its own, so that the controller serves its clients meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, TypeVar

from nats.js import JetStreamContext, api

from hydra.errors import ServerError
from hydra.natstest.connection import NatsConnection
from hydra.system import Waiting, wait_alone
from hydra.system.worker_thread import WorkerThread

QUESTION_TIMEOUT_S: Final = 4.0
CHANGE_TIMEOUT_S: Final = 10.0
_STORAGE: Final = {"memory": api.StorageType.MEMORY, "file": api.StorageType.FILE}

FILE: Final = "nats-streams"
"""In a run's folder: a stream a line. It is there while one of them may be."""

_T = TypeVar("_T")


class JetStreams:
    """The streams of one run; it deletes those that it created.

    Arguments:
        servers: ``host:port`` of each.
        wait: how to wait for them.
    """

    def __init__(self, servers: Sequence[str], wait: Waiting = wait_alone) -> None:
        self._servers = list(servers)
        self._connection = NatsConnection("hydra-controller")
        self._background = WorkerThread(wait)
        self._ours: list[str] = []

    @property
    def ours(self) -> Sequence[str]:
        """The streams that were created and not deleted yet."""
        return tuple(self._ours)

    def reach(self, *, jetstream: bool) -> str:
        """The servers' version.

        Raises:
            ServerError: they do not answer, or have no JetStream where it is needed.
        """

        def ask() -> str:
            if jetstream:
                self._connection.do(self._stream().account_info(), QUESTION_TIMEOUT_S)
            else:
                self._stream()
                self._connection.do(self._connection.client.flush(), QUESTION_TIMEOUT_S)
            return str(self._connection.client.connected_server_version)

        return self._ask(ask, "JetStream" if jetstream else "")

    def create(self, name: str, subject: str, storage: str, replicas: int = 1) -> None:
        """Makes a stream of one subject; one that is there like this is taken as it is.

        Raises:
            ServerError: the servers refuse it.
        """
        # Written down before it is there: one that was interrupted is deleted as well.
        if name not in self._ours:
            self._ours.append(name)
        config = api.StreamConfig(name=name, subjects=[subject], storage=_STORAGE[storage], num_replicas=replicas)
        self._ask(lambda: self._connection.do(self._stream().add_stream(config), CHANGE_TIMEOUT_S), f"stream {name}")

    def names(self) -> Sequence[str]:
        """All streams of these servers.

        Raises:
            ServerError: they do not tell.
        """

        def ask() -> list[str]:
            found = self._connection.do(self._stream().streams_info(), QUESTION_TIMEOUT_S)
            return [str(stream.config.name) for stream in found]

        return self._ask(ask, "the streams")

    def last(self, name: str) -> int:
        """The sequence of the stream's last message, 0 if there was none yet.

        Raises:
            ServerError: the servers do not tell.
        """

        def ask() -> int:
            return self._connection.do(self._stream().stream_info(name), QUESTION_TIMEOUT_S).state.last_seq

        return self._ask(ask, f"stream {name}")

    def forget(self, name: str, before: int) -> None:
        """Deletes what is in front of a sequence; one that cannot be deleted just now is so the next time."""

        def purge() -> None:
            self._connection.do(self._stream().purge_stream(name, seq=before), CHANGE_TIMEOUT_S)

        if before > 1:
            self._background.submit(purge)

    def delete(self, name: str) -> None:
        """Removes a stream with all that is in it, if it is there.

        Raises:
            ServerError: the servers do not do it.
        """
        if name in self.names():
            self._ask(
                lambda: self._connection.do(self._stream().delete_stream(name), CHANGE_TIMEOUT_S), f"stream {name}"
            )
        if name in self._ours:
            self._ours.remove(name)

    def close(self) -> None:
        """Ends the connection; what was not deleted stays."""
        self._background.submit(self._connection.end)
        self._background.close()

    def _stream(self) -> JetStreamContext:
        self._connection.open(self._servers)
        return self._connection.client.jetstream(timeout=CHANGE_TIMEOUT_S)

    def _ask(self, call: Callable[[], _T], about: str) -> _T:
        try:
            return self._background.ask(call, 2 * CHANGE_TIMEOUT_S)
        except OSError as e:
            where = f"NATS at {','.join(self._servers)}"
            what = str(e) or "it takes too long to answer"
            if where not in what:
                what = f"{where}: {about + ': ' if about else ''}{what}"
            raise ServerError(what, "see the servers' log") from None


class StreamRegistry:
    """What a run has on the user's servers, by name in its folder: if it is killed, its resumption removes that.

    Arguments:
        folder: the run's.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / FILE

    def all(self) -> Sequence[str]:
        """Every name, oldest first."""
        try:
            return self._file.read_text().split()
        except FileNotFoundError:
            return ()

    def add(self, name: str) -> None:
        """To be called before the stream is made; raises OSError."""
        if name not in self.all():
            with self._file.open("a") as file:
                file.write(f"{name}\n")

    def remove(self, name: str) -> None:
        """To be called after it was deleted; raises OSError."""
        left = [other for other in self.all() if other != name]
        if left:
            self._file.write_text("".join(f"{other}\n" for other in left))
        else:
            self._file.unlink(missing_ok=True)
