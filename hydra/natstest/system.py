"""NATS as a system under test: servers started by Hydra or the user's, with the run's subjects and streams."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import socket
import threading
import time
from collections.abc import Hashable, Sequence
from dataclasses import replace
from shlex import quote
from typing import TYPE_CHECKING, Any, Final

import msgspec

from hydra.client.server_interface import may_listen
from hydra.client.tls import AccessError
from hydra.errors import ServerError, StepError, UsageError
from hydra.events.warnings import AddressesSilent, AdvertisedSilent, CleanupFailed, EarlierCleanup
from hydra.model import Role, Scenario, ServerFacts, Settings
from hydra.native.client_command import command
from hydra.natstest.access import access_of, addresses, reached
from hydra.natstest.first_contact import examine
from hydra.natstest.program import KIND, PROGRAM, NatsJoin, NatsProgram
from hydra.natstest.server_demands import host_and_port, info_of
from hydra.natstest.settings import NatsAccess, NatsEnd, NatsSettings, spec_of
from hydra.natstest.streams import JetStreams, RefusedStreamError, StreamRegistry
from hydra.system import Program
from hydra.system.server_system import ServerSystem, SystemServers
from hydra.system.worker_thread import WorkerThread
from hydra.wire import kind_of

if TYPE_CHECKING:
    from hydra.system.run_certificates import RunAuthority

_ANSWER_TIMEOUT_S: Final = 0.5
_WARM_UP_WITHIN_S: Final = 20.0
_ASK_AGAIN_S: Final = 0.2
_SIGNING: Final = ("cryptography", "cffi")
"""What signs with the seed of a login; cryptography's own module in C imports a part of cffi."""


class NatsCluster:
    """A single server, or several with a route from each to all others.

    Arguments:
        authority: the CA of the servers' certificates; None: they use no TLS.
    """

    def __init__(self, authority: RunAuthority | None = None) -> None:
        self._authority = authority
        self._names: list[str] = []

    def join(self, endpoints: Sequence[str]) -> list[dict[str, Any] | None]:
        """New names, and for each server the addresses of all servers."""
        cluster = f"hydra-{secrets.token_hex(8)}"
        self._names = [f"{cluster}-{number}" for number in range(1, len(endpoints) + 1)]
        joins = [
            NatsJoin(
                name=name,
                cluster=cluster,
                endpoints=list(endpoints),
                tls=self._authority.server(endpoint) if self._authority else None,
            )
            for name, endpoint in zip(self._names, endpoints, strict=True)
        ]
        return [msgspec.to_builtins(join) for join in joins]

    def address(self, endpoints: Sequence[str]) -> str:
        """``host:port`` of every server, separated by commas."""
        return ",".join(endpoint.split(",")[0] for endpoint in endpoints)

    def up(self, address: str) -> bool:
        """Whether each server answers; its name shows that no other program has bound the port before it.

        Several servers must also have elected a leader, because they answer nothing about streams before.
        """
        if [greeting(server).get("server_name") for server in address.split(",")] != self._names:
            return False
        if len(self._names) > 1:
            with contextlib.closing(self._streams(address)) as streams:
                try:
                    streams.reach(jetstream=True)
                except ServerError:
                    return False
        return True

    def _streams(self, address: str) -> JetStreams:
        tls = self._authority.client if self._authority else None
        return JetStreams(NatsAccess(servers=address.split(","), tls=tls))

    def warm_up(self, address: str) -> None:
        """Makes and deletes a stream: several servers can do this only after they have elected a leader.

        Raises:
            ServerError: they could not in time.
        """
        deadline = time.monotonic() + _WARM_UP_WITHIN_S
        name = f"hydra-warm-up-{secrets.token_hex(4)}"
        with contextlib.closing(self._streams(address)) as streams:
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
    """The INFO object that the server at ``host:port`` sends to every client; {} if no server answers."""
    try:
        with socket.create_connection(host_and_port(server), _ANSWER_TIMEOUT_S) as connection:
            connection.settimeout(_ANSWER_TIMEOUT_S)
            return info_of(connection.makefile("rb").readline(65_536))
    except (OSError, ValueError):
        return {}


EVERY_S: Final = 1.0
SILENT_AFTER_S: Final = 3.0
_ANSWER_WITHIN_S: Final = 1.0
_LONGEST_PART: Final = 100
"""The maximum number of characters of a run's name in the names of its streams."""
_BLOCK_BYTES: Final = 512
_ONLY_NAMED_CAS: Final = {"SSL_CERT_FILE": os.devnull, "SSL_CERT_DIR": os.devnull}
"""libnats trusts the CAs of the machine in addition to those that Hydra names; with this, OpenSSL finds none."""
_SEVERAL_FILTERS: Final = (2, 10)
"""The first version of nats-server whose consumers filter several subjects of a stream."""
_OF_STREAMS: Final = ("mode", "storage")
"""Settings that clients do not get, because they follow from the stream."""


class NatsSystem(ServerSystem):
    """See :class:`hydra.system.System`; without ``servers`` in the scenario, Hydra starts servers.

    Arguments as for :class:`hydra.system.server_system.ServerSystem`.
    """

    def __init__(self, scenario: Scenario, *, deploy: bool = False, is_local: bool = True) -> None:
        self._spec = spec_of(scenario)
        users = ",".join(each.endpoint for each in addresses(self._spec))
        super().__init__(scenario, users, deploy=deploy, is_local=is_local, tls=self._spec.tls)
        self.servers = NatsServers(self)
        self._reached: NatsAccess | None = None  # how the user's servers let clients in
        self._streams: JetStreams | None = None
        self._registry: StreamRegistry | None = None  # of the streams on the user's servers
        self._version = ""
        self._stream = ""  # the stream of the current step, "" in core mode
        self._began: dict[str, int] = {}  # the first sequence of the last step, by stream

    def program(self, role: Role) -> Program:
        """The program of the implementation that the scenario names."""
        if self._scenario.client == "native":
            environment = _ONLY_NAMED_CAS if self._has_tls or self._spec.ca_file else {}
            return Program(command("nats", role, self._scenario.native, tls=self._demands_tls()), environment)
        login = self._known_access().login if self._users else None
        libraries = ("nats-py", *(_SIGNING if login and login.seed else ()))
        return Program.of_module("hydra.natstest.nats_py", kind_of("nats", role), libraries=libraries)

    def configure(self, settings: Settings) -> dict[str, Any]:
        """The settings, and where the data goes: a subject, and with JetStream a stream and its next sequence.

        Messages of steps before the stream's last step are deleted.
        """
        own = NatsSettings.of(settings)
        stream, subject, first = "", f"{self._run}.core", 1
        if own.mode == "jetstream":
            stream, subject = f"{self._run}-{own.storage}", f"{self._run}.{own.storage}"
            if settings.topics > 1:
                stream, subject = f"{stream}-topics", f"{subject}-topics"
            first = self._first(stream, f"{subject}.*" if settings.topics > 1 else subject, own.storage)
        self._stream = stream
        step = {name: value for name, value in own.values().items() if name not in _OF_STREAMS}
        where = {"servers": self._access.servers, "subject": subject, "stream": stream, "first": first}
        access = {"login": self._access.login, "tls": self._access.tls}
        return {**step, **where, **{name: msgspec.to_builtins(each) for name, each in access.items() if each}}

    def _first(self, stream: str, subject: str, storage: str) -> int:
        """The sequence of the stream's next message; the stream is made if it does not exist yet."""
        streams = self._opened()
        if stream not in self._began:
            if self._registry is not None:
                self._registry.add(stream)
            try:
                self._answered(lambda: streams.create(stream, subject, storage, self._spec.replicas))
            except StepError as e:
                if self._users and isinstance(e.__cause__, RefusedStreamError):
                    raise UsageError(e.what, "lower nats.replicas, or make room on the servers") from None
                raise
        else:
            streams.forget(stream, self._began[stream])
        first = self._answered(lambda: streams.last(stream)) + 1
        self._began[stream] = first
        return first

    def finish(self) -> dict[str, Any] | None:
        """The stream's last sequence; None in core mode, in which only the servers are checked."""
        streams, stream = self._opened(), self._stream
        if not stream:
            self._answered(lambda: streams.reach(jetstream=False))
            return None
        return msgspec.to_builtins(NatsEnd(last=self._answered(lambda: streams.last(stream))))  # type: ignore[no-any-return]

    def proof(self, settings: Settings) -> Hashable:
        """The servers, and all settings except a publisher's: if one changes, a subscriber subscribes again."""
        own = NatsSettings.of(settings)
        return self._address, replace(own, publish_acks=True, publish_window=1)

    def _opened(self) -> JetStreams:
        if self._streams is None:
            raise ServerError("the NATS system is not open")
        return self._streams

    def metadata(self) -> dict[str, str]:
        """The servers, their version, and the run's subjects."""
        return {"servers": self._address, "subjects": f"{self._run}.*", PROGRAM: self._version}

    def _unique(self, run: str) -> str:
        part = re.sub(r"[^A-Za-z0-9_-]+", "-", run)[:_LONGEST_PART]
        return f"hydra-{part}-{secrets.token_hex(4)}"

    @property
    def _access(self) -> NatsAccess:
        tls = self._authority.client if self._authority else None
        return self._reached or NatsAccess(servers=self._address.split(","), tls=tls)

    def _known_access(self) -> NatsAccess:
        """How the user's servers are reached; before they were asked, by the scenario alone."""
        return self._reached or access_of(self._spec)

    def _demands_tls(self) -> bool:
        """Whether clients use TLS."""
        return self._known_access().tls is not None if self._users else self._has_tls

    def _reach(self) -> None:
        self._let_in()
        with contextlib.closing(JetStreams(self._access)) as streams:
            try:
                version = streams.reach(jetstream=self._needs_streams())
                examine(streams, self._scenario, self._users, jetstream=self._needs_streams())
            except ServerError as e:
                raise UsageError(e.what, e.remedy) from None
        self._check_filters(version)

    def _let_in(self) -> None:
        """Finds out how the user's servers are reached.

        Raises:
            UsageError: none answers, or one rejects a client; or native clients are without the TLS that one demands.
        """
        try:
            found = reached(access_of(self._spec))
        except AccessError as e:
            raise UsageError(str(e), e.remedy or "check the host and port of --servers") from None
        self._reached = found.access
        silent, advertised = (
            {address: error.reason for address, error in errors.items()} for errors in (found.silent, found.advertised)
        )
        self._warnings += [AddressesSilent("NATS", silent)] if silent else []
        servers = f"NATS at {','.join(found.access.servers)}"
        self._warnings += [AdvertisedSilent(servers, advertised)] if advertised else []
        self.program("subscriber")

    def _needs_streams(self) -> bool:
        modes = (NatsSettings.of(self._scenario.settings).mode, *self._scenario.values_of("mode"))
        return "jetstream" in modes

    def _check_filters(self, version: str) -> None:
        """Raises UsageError if subscribers have more topics of a stream than one consumer of these servers can have."""
        topics, some = (max(self._scenario.whole_values(name)) for name in ("topics", "topics_per_client"))
        numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
        if 1 < some < topics and self._needs_streams() and numbers < _SEVERAL_FILTERS:
            raise UsageError(
                f"nats-server {version} filters one subject of a stream, and each subscriber has {some} topics",
                "use nats-server 2.10 or newer, --topics-per-client 1, or --mode core",
            )

    def _server_program(self) -> NatsProgram:
        return NatsProgram()

    def _server_node(self) -> Program:
        return Program.of_module("hydra.natstest.server_main", KIND)

    def _server_cluster(self) -> NatsCluster:
        return NatsCluster(self._authority)

    def _connect(self) -> None:
        """Connects, and removes what a killed run left on the user's servers; a step makes the streams it needs."""
        self._began = {}
        if self._users and self._reached is None:
            self._let_in()
        self._streams = JetStreams(self._access, self._wait)
        self._version = self._streams.reach(jetstream=self._needs_streams())
        self._check_filters(self._version)
        self._watch()
        if self._users:
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
        return ServerMonitor(self._address.split(",")) if self._users else None

    def _return(self) -> None:
        """Connects again; streams are made again, because a stream in memory may be lost with its server."""
        self._opened().reach(jetstream=self._needs_streams())
        self._watch()
        self._began = {}

    def _renew(self) -> None:
        """Connects again; the library of the old connection would wait for seconds."""
        streams, self._streams = self._streams, JetStreams(self._access, self._wait)
        if streams is not None:
            streams.close()
        self._streams.reach(jetstream=self._needs_streams())
        self._watch()

    def _kept(self, stream: str) -> CleanupFailed:
        """The warning about a stream that is not deleted, with the command that removes it."""
        clean = f"nats --server {quote(self._address)} stream rm {stream}"
        return CleanupFailed(stream, self._address, f"{clean} removes it when the servers answer")

    def _disconnect(self) -> None:
        """Deletes the streams on the user's servers; those on Hydra's servers are deleted with the servers' data."""
        streams, self._streams = self._streams, None
        if streams is None:
            return
        with contextlib.closing(streams):
            for stream in streams.created if self._users else ():
                try:
                    streams.delete(stream)
                except ServerError:
                    self._warnings.append(self._kept(stream))
                else:
                    if self._registry is not None:
                        self._registry.remove(stream)


class NatsServers(SystemServers[NatsSystem]):
    """The servers of a run. See :class:`hydra.system.RunServers`."""

    def facts(self) -> ServerFacts:
        """The version that the servers report, their source, and whether clients use TLS."""
        versions = {PROGRAM: self._system._version} if self._system._version else {}
        return replace(super().facts(), versions=versions, tls=self._system._demands_tls())

    def connections(self) -> int:
        """That of the requests to the servers."""
        return int(self._system._streams is not None)

    def log_end(self, settings: Settings) -> int | None:
        """The number of messages that were ever put into the stream; None without a stream."""
        if NatsSettings.of(settings).mode == "core" or not self._system._stream:
            return None
        streams, stream = self._system._opened(), self._system._stream
        return self._system._answered(lambda: streams.last(stream))

    def stored_bytes(self) -> int:
        """Disk space of the streams in files, of a server that Hydra started on this machine."""
        system, total = self._system, 0
        for path in system._folder.glob(f"**/streams/**/{system._run}-file*/**/*") if system._own else ():
            with contextlib.suppress(OSError):  # the server has just removed it
                total += path.stat().st_blocks * _BLOCK_BYTES
        return total

    def left(self) -> list[CleanupFailed]:
        """The streams on the user's servers that are not deleted."""
        registry = self._system._registry
        return [self._system._kept(each) for each in (registry.all() if registry is not None else ())]


class ServerMonitor:
    """Connects to the user's servers repeatedly on a separate thread, until it is closed.

    If one of several servers is dead, clients connect to another one; this is no failure of the step.

    Arguments:
        servers: ``host:port`` of each server.
    """

    def __init__(self, servers: Sequence[str]) -> None:
        self._servers = tuple(servers)
        self._addresses = [host_and_port(server) for server in servers]
        self._failure = ""
        self._closed = threading.Event()
        self._thread = WorkerThread()
        self._thread.submit(self._run)

    def failure(self) -> str:
        """A text if no server answered, else ""; returns at once.

        The text stays when servers are back, because data may be lost.
        """
        return self._failure

    def close(self) -> None:
        """Ends the monitor; the thread ends soon by itself."""
        self._closed.set()
        self._thread.close()

    def _run(self) -> None:
        heard = time.monotonic()
        while not self._closed.wait(EVERY_S):
            if any(may_listen(*address, _ANSWER_WITHIN_S) for address in self._addresses):
                heard = time.monotonic()
            elif time.monotonic() - heard >= SILENT_AFTER_S:
                self._failure = f"NATS at {','.join(self._servers)} does not answer any more"
                return
