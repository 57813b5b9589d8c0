"""NATS as a system under test: servers of our own or the user's, and the run's subjects and streams on them."""

from __future__ import annotations

import contextlib
import json
import re
import secrets
import socket
import threading
import time
from collections.abc import Hashable, Sequence
from dataclasses import astuple, replace
from typing import Any, Final

import msgspec

from hydra.client.server_interface import accepts
from hydra.errors import ServerError, UsageError
from hydra.events.warnings import CleanupFailed, EarlierCleanup
from hydra.model import Role, Scenario, Settings
from hydra.native.client_command import command
from hydra.natstest.program import KIND, PROGRAM, NatsJoin, NatsProgram
from hydra.natstest.settings import NatsEnd, NatsSettings, spec_of
from hydra.natstest.streams import JetStreams, StreamRegistry
from hydra.system import Program
from hydra.system.server_system import ServerSystem
from hydra.system.worker_thread import WorkerThread
from hydra.wire.protocol_constants import kind_of

_ANSWER_TIMEOUT_S: Final = 0.5
_WARM_UP_WITHIN_S: Final = 20.0
_ASK_AGAIN_S: Final = 0.2


class NatsCluster:
    """One server, or several with a route from each to all others."""

    def __init__(self) -> None:
        self._names: list[str] = []

    def join(self, endpoints: Sequence[str]) -> list[dict[str, Any] | None]:
        """New names, and to each server the addresses of all."""
        cluster = f"hydra-{secrets.token_hex(8)}"
        self._names = [f"{cluster}-{number}" for number in range(1, len(endpoints) + 1)]
        return [
            msgspec.to_builtins(NatsJoin(name=name, cluster=cluster, endpoints=list(endpoints))) for name in self._names
        ]

    def address(self, endpoints: Sequence[str]) -> str:
        """``host:port`` of every server, with commas."""
        return ",".join(endpoint.split(",")[0] for endpoint in endpoints)

    def up(self, address: str) -> bool:
        """Whether each of them answers there; its name tells it from a stranger who was quicker to bind the port."""
        return [greeting(server).get("server_name") for server in address.split(",")] == self._names

    def warm_up(self, address: str) -> None:
        """A stream that comes and goes: several servers agree on one only when they have a leader.

        Raises:
            ServerError: they do not in time.
        """
        deadline = time.monotonic() + _WARM_UP_WITHIN_S
        name = f"hydra-warm-up-{secrets.token_hex(4)}"
        with contextlib.closing(JetStreams(address.split(","))) as streams:
            while True:
                try:
                    streams.create(name, name, "memory")
                    streams.delete(name)
                except ServerError:
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(_ASK_AGAIN_S)
                else:
                    return


def greeting(server: str) -> dict[str, Any]:
    """What the server at ``host:port`` says of itself to everybody who connects; empty if nothing does."""
    host, _, port = server.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), _ANSWER_TIMEOUT_S) as connection:
            connection.settimeout(_ANSWER_TIMEOUT_S)
            line = connection.makefile("rb").readline(65_536)
        info = json.loads(line.removeprefix(b"INFO "))
    except (OSError, ValueError):
        return {}
    return info if isinstance(info, dict) else {}


EVERY_S: Final = 1.0
GONE_AFTER_S: Final = 3.0
_ANSWER_WITHIN_S: Final = 1.0
_LONGEST_PART: Final = 100
"""Characters of a run's name in its streams'."""
_BLOCK_BYTES: Final = 512
_OF_STREAMS: Final = ("mode", "storage")
"""Settings that no client is told: they follow from the stream."""


class NatsSystem(ServerSystem):
    """See :class:`hydra.system.System`; without ``servers`` in the scenario they are ours.

    Arguments as for :class:`hydra.system.server_system.ServerSystem`.
    """

    def __init__(self, scenario: Scenario, *, deploy: bool = False, is_local: bool = True) -> None:
        self._spec = spec_of(scenario)
        super().__init__(scenario, self._spec.servers, deploy=deploy, is_local=is_local)
        self._streams: JetStreams | None = None
        self._registry: StreamRegistry | None = None  # of what is on the user's
        self._version = ""
        self._stream = ""  # of the present step, "" in core mode
        self._began: dict[str, int] = {}  # by stream, where its last step did

    def program(self, role: Role) -> Program:
        """The client that the scenario names."""
        if self._scenario.client == "native":
            return Program(command("nats", role, self._scenario.native), {})
        return Program.of_module("hydra.natstest.nats_py", kind_of("nats", role), libraries=("nats-py",))

    def configure(self, settings: Settings) -> dict[str, Any]:
        """The settings, and where the data goes: a subject, and in JetStream its stream as it ends now.

        What a stream holds of steps before its last one is deleted.
        """
        own = NatsSettings.of(settings)
        stream, subject, first = "", f"{self._run}.core", 1
        if own.mode == "jetstream":
            stream, subject = f"{self._run}-{own.storage}", f"{self._run}.{own.storage}"
            first = self._first(stream, subject, own.storage)
        self._stream = stream
        told = {name: value for name, value in settings.system.items() if name not in _OF_STREAMS}
        where = {"servers": self._address.split(","), "subject": subject, "stream": stream, "first": first}
        return {**told, **where}

    def _first(self, stream: str, subject: str, storage: str) -> int:
        """The sequence that the stream's next message gets; the stream is made if it is not there yet."""
        streams = self._opened()
        if stream not in self._began:
            if self._registry is not None:
                self._registry.add(stream)
            self._asked(lambda: streams.create(stream, subject, storage, self._spec.replicas))
        else:
            streams.forget(stream, self._began[stream])
        first = self._asked(lambda: streams.last(stream)) + 1
        self._began[stream] = first
        return first

    def finish(self) -> dict[str, Any] | None:
        """The stream's last sequence; nobody knows an end in core mode, but the servers have to be there still."""
        streams, stream = self._opened(), self._stream
        if not stream:
            self._asked(lambda: streams.reach(jetstream=False))
            return None
        return msgspec.to_builtins(NatsEnd(last=self._asked(lambda: streams.last(stream))))  # type: ignore[no-any-return]

    def proof(self, settings: Settings) -> Hashable:
        """The servers, and all settings but a publisher's: with others a subscriber subscribes anew."""
        own = NatsSettings.of(settings)
        return (self._address, astuple(replace(own, publish_acks=True, publish_window=1)))

    def log_end(self, settings: Settings) -> int | None:
        """The messages that were ever put into the stream; None without one."""
        if NatsSettings.of(settings).mode == "core" or not self._stream:
            return None
        streams, stream = self._opened(), self._stream
        return self._asked(lambda: streams.last(stream))

    def _opened(self) -> JetStreams:
        if self._streams is None:
            raise ServerError("the NATS system is not open")
        return self._streams

    def stored_bytes(self) -> int:
        """What streams in files take on this machine's disk, of servers of our own."""
        total = 0
        for path in self._folder.glob(f"**/streams/**/{self._run}-file/**/*") if self._own else ():
            with contextlib.suppress(OSError):  # the server has just removed it
                total += path.stat().st_blocks * _BLOCK_BYTES
        return total

    def metadata(self) -> dict[str, str]:
        """The servers' version, and where the data goes."""
        return {"servers": self._address, "subjects": f"{self._run}.*", PROGRAM: self._version}

    def _unique(self, run: str) -> str:
        part = re.sub(r"[^A-Za-z0-9_-]+", "-", run)[:_LONGEST_PART]
        return f"hydra-{part}-{secrets.token_hex(4)}"

    def _reach(self) -> None:
        with contextlib.closing(JetStreams(self._theirs.split(","))) as streams:
            try:
                streams.reach(jetstream=self._needs_streams())
            except ServerError as e:
                raise UsageError(e.what, e.remedy) from None

    def _needs_streams(self) -> bool:
        modes = (NatsSettings.of(self._scenario.settings).mode, *self._scenario.values_of("mode"))
        return "jetstream" in modes

    def _server_program(self) -> NatsProgram:
        return NatsProgram()

    def _server_node(self) -> Program:
        return Program.of_module("hydra.natstest.server_main", KIND)

    def _server_cluster(self) -> NatsCluster:
        return NatsCluster()

    def _connect(self) -> None:
        """Removes what a killed predecessor left on the user's servers; streams are made when a step asks for one."""
        self._began = {}
        self._streams = JetStreams(self._address.split(","), self._wait)
        self._version = self._streams.reach(jetstream=self._needs_streams())
        self._watch()
        if self._theirs:
            self._remove_earlier(self._streams)

    def _remove_earlier(self, streams: JetStreams) -> None:
        registry = self._registry = StreamRegistry(self._folder)
        for stream in registry.all():
            try:
                streams.delete(stream)
            except ServerError as e:
                self._warnings.append(EarlierCleanup("a stream", f"kept {stream}: {e.what}"))
            else:
                registry.remove(stream)
                self._warnings.append(EarlierCleanup("a stream", f"removed {stream}"))

    def _observed(self) -> ServerMonitor | None:
        return ServerMonitor(self._address.split(",")) if self._theirs else None

    def _return(self) -> None:
        """A stream in memory may have gone with its server."""
        self._opened().reach(jetstream=self._needs_streams())
        self._watch()
        self._began = {}

    def _disconnect(self) -> None:
        """Deletes the streams, unless they go with our servers' data."""
        streams, self._streams = self._streams, None
        if streams is None:
            return
        with contextlib.closing(streams):
            for stream in streams.ours if self._theirs else ():
                try:
                    streams.delete(stream)
                except ServerError as e:
                    self._warnings.append(
                        CleanupFailed(stream, self._address, f"remove it once they answer again: {e.what}")
                    )
                else:
                    if self._registry is not None:
                        self._registry.remove(stream)


class ServerMonitor:
    """Tries to connect to the user's servers, again and again on a thread of its own, until it is closed.

    Where one of several is gone clients go to another; that is no failure of the step.

    Arguments:
        servers: ``host:port`` of each.
    """

    def __init__(self, servers: Sequence[str]) -> None:
        self._servers = tuple(servers)
        self._addresses = [(host.strip("[]"), int(port)) for host, _, port in (s.rpartition(":") for s in servers)]
        self._gone = ""
        self._closed = threading.Event()
        self._thread = WorkerThread()
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
            if any(accepts(*address, _ANSWER_WITHIN_S) for address in self._addresses):
                heard = time.monotonic()
            elif time.monotonic() - heard >= GONE_AFTER_S:
                self._gone = f"NATS at {','.join(self._servers)} is gone"
                return
