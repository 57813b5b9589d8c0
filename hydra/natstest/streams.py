"""The streams of a run, managed by the controller, and the file that lists them.

A separate thread sends all requests to the servers, so the controller serves its clients meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from nats.aio.client import Client
from nats.js import JetStreamContext, api

from hydra.errors import ServerError
from hydra.natstest.connection import SERVED_EVERY_S, NatsConnection
from hydra.natstest.library_loop import NO_RESPONDERS, JetStreamError
from hydra.natstest.settings import NatsAccess
from hydra.system import Waiting, wait_alone
from hydra.system.worker_thread import WorkerThread

QUESTION_TIMEOUT_S: Final = 4.0
CHANGE_TIMEOUT_S: Final = 10.0
_STORAGE: Final = {"memory": api.StorageType.MEMORY, "file": api.StorageType.FILE}

FILE: Final = "nats-streams"
"""The file in a run's folder with a stream per line. The file exists as long as one of the streams may exist."""

_PASSING: Final = frozenset({10008, 10009})
"""The servers' codes for a cluster that has no leader yet."""
_OFF: Final = frozenset({0, 10039, 10076})
"""No server answers requests for JetStream; the codes for an account, and for a server, without it."""

_T = TypeVar("_T")


class RefusedStreamError(ServerError):
    """The servers answered a request about a stream, and rejected it; another try has the same answer."""


class JetStreams:
    """The streams of one run.

    Arguments:
        access: how to reach the servers.
        wait: how to wait for the servers.
    """

    def __init__(self, access: NatsAccess, wait: Waiting = wait_alone) -> None:
        self._access = access
        self._connection = NatsConnection("hydra-controller")
        self._background = WorkerThread(wait, idle=self._connection.keep_alive, every_s=SERVED_EVERY_S)
        self._created: list[str] = []

    @property
    def created(self) -> Sequence[str]:
        """The streams that were created and not deleted yet."""
        return tuple(self._created)

    def reach(self, *, jetstream: bool) -> str:
        """Connects to the servers and returns their version.

        Raises:
            ServerError: the servers do not answer, or lack JetStream although it is needed.
        """

        def ask() -> str:
            if jetstream:
                try:
                    self._connection.do(self._stream().account_info(), QUESTION_TIMEOUT_S)
                except OSError as e:
                    # Servers of a cluster without JetStream leave the question without an answer.
                    info = self._connection.info
                    if isinstance(e, JetStreamError) or not info or info.get("jetstream"):
                        raise
                    raise JetStreamError(0, NO_RESPONDERS) from None
            else:
                self._stream()
                self._connection.confirm(QUESTION_TIMEOUT_S)
            return str(self._connection.info.get("version", ""))

        return self._ask(ask, "JetStream" if jetstream else "")

    def create(self, name: str, subject: str, storage: str, replicas: int = 1) -> None:
        """Makes a stream of one subject; an identical existing stream is used.

        Raises:
            RefusedStreamError: the servers reject the stream.
            ServerError: the servers do not answer.
        """
        # The name is noted before the stream is made, so the stream is deleted after an interruption, too.
        if name not in self._created:
            self._created.append(name)
        config = api.StreamConfig(name=name, subjects=[subject], storage=_STORAGE[storage], num_replicas=replicas)
        about = f"a stream with {replicas} {'replica' if replicas == 1 else 'replicas'} in {storage}"
        self._ask(lambda: self._connection.do(self._stream().add_stream(config), CHANGE_TIMEOUT_S), about)

    def info(self) -> Mapping[str, Any]:
        """The INFO of the server to which this object is connected."""
        return self._connection.info

    def usage(self) -> tuple[int, int]:
        """The number of streams of this user's account, and the most that it may have; -1: there is no limit.

        Raises:
            ServerError: the servers do not answer.
        """

        def ask() -> tuple[int, int]:
            account = self._connection.do(self._stream().account_info(), QUESTION_TIMEOUT_S)
            return account.streams, account.limits.max_streams

        return self._ask(ask, "JetStream")

    def forbidden(self, publish: Sequence[str], subscribe: Sequence[str]) -> list[str]:
        """Publishes an empty message on some subjects and subscribes to others; returns what the server rejects.

        Raises:
            ServerError: the servers do not answer.
        """

        async def use(client: Client) -> None:
            for subject in subscribe:
                await client.subscribe(subject)
            for subject in publish:
                # A request without a reply would make the server send to no subject.
                await client.publish(subject, reply=f"{publish[0]}.reply")

        def ask() -> list[str]:
            self._stream()
            self._connection.do(use(self._connection.client), QUESTION_TIMEOUT_S)
            self._connection.confirm(QUESTION_TIMEOUT_S)
            return list(self._connection.forbidden)

        return self._ask(ask, "")

    def names(self) -> Sequence[str]:
        """The names of all streams of these servers.

        Raises:
            ServerError: the servers do not answer.
        """

        def ask() -> list[str]:
            found = self._connection.do(self._stream().streams_info(), QUESTION_TIMEOUT_S)
            return [str(stream.config.name) for stream in found]

        return self._ask(ask, "the streams")

    def last(self, name: str) -> int:
        """The sequence of the stream's last message; 0 if there was none yet.

        Raises:
            ServerError: the servers do not answer.
        """

        def ask() -> int:
            return self._connection.do(self._stream().stream_info(name), QUESTION_TIMEOUT_S).state.last_seq

        return self._ask(ask, f"stream {name}")

    def forget(self, name: str, before: int) -> None:
        """Deletes the messages before a sequence; what cannot be deleted now is deleted by the next call."""

        def purge() -> None:
            self._connection.do(self._stream().purge_stream(name, seq=before), CHANGE_TIMEOUT_S)

        if before > 1:
            self._background.submit(purge)

    def delete(self, name: str) -> None:
        """Deletes a stream and its messages, if it exists.

        Raises:
            ServerError: the servers did not delete it.
        """
        if name in self.names():
            self._ask(
                lambda: self._connection.do(self._stream().delete_stream(name), CHANGE_TIMEOUT_S), f"stream {name}"
            )
        if name in self._created:
            self._created.remove(name)

    def close(self) -> None:
        """Ends the connection; streams that were not deleted stay."""
        self._background.submit(self._connection.end)
        self._background.close()

    def _stream(self) -> JetStreamContext:
        self._connection.open(self._access)
        return self._connection.client.jetstream(timeout=CHANGE_TIMEOUT_S)

    def _ask(self, call: Callable[[], _T], about: str) -> _T:
        try:
            return self._background.ask(call, 2 * CHANGE_TIMEOUT_S)
        except OSError as e:
            where = f"NATS at {','.join(self._access.servers)}"
            what = str(e) or "the server takes too long to answer"
            if where not in what:
                what = f"{where}: {about + ': ' if about else ''}{what}"
            code = e.code if isinstance(e, JetStreamError) else None
            if code in _PASSING:
                raise ServerError(what, "start more servers of the cluster: it has no leader; see their logs") from None
            remedy = "turn JetStream on, or use --mode core" if code in _OFF else "check --servers, and see their logs"
            raise (RefusedStreamError if code else ServerError)(what, remedy) from None


class StreamRegistry:
    """The file that lists the run's streams on the user's servers: if the run is killed, its resumption deletes them.

    Arguments:
        folder: the run directory.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / FILE

    def all(self) -> Sequence[str]:
        """All names, oldest first."""
        try:
            return self._file.read_text().split()
        except FileNotFoundError:
            return ()

    def add(self, name: str) -> None:
        """Adds a name, before the stream is made; raises OSError."""
        if name not in self.all():
            with self._file.open("a") as file:
                file.write(f"{name}\n")

    def remove(self, name: str) -> None:
        """Removes the name of a deleted stream from the file of streams; raises OSError if that fails."""
        left = [other for other in self.all() if other != name]
        if left:
            self._file.write_text("".join(f"{other}\n" for other in left))
        else:
            self._file.unlink(missing_ok=True)
