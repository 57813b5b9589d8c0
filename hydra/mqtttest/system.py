"""MQTT as a system under test: a server started by Hydra or the user's, and the run's topics on it."""

from __future__ import annotations

import contextlib
import re
import secrets
import threading
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from shlex import quote
from typing import TYPE_CHECKING, Any, Final, TypeVar, get_args

import msgspec

from hydra.client.tls import AccessError
from hydra.config.plugins import greetings
from hydra.errors import ServerError, UsageError
from hydra.events.warnings import CleanupFailed
from hydra.model import Role, Scenario, ServerFacts, Settings
from hydra.mqtttest.access import FORM, access_of, address, uses_tls
from hydra.mqtttest.connection import MqttConnection
from hydra.mqtttest.first_contact import examine
from hydra.mqtttest.program import KIND, MosquittoJoin, MosquittoProgram
from hydra.mqtttest.settings import MqttAccess, MqttSettings, Protocol, most_in_flight, spec_of
from hydra.native.client_command import command
from hydra.system import Program
from hydra.system.listener import explained
from hydra.system.server_system import ServerSystem, SystemServers
from hydra.system.worker_thread import WorkerThread
from hydra.wire import kind_of

if TYPE_CHECKING:
    import paho.mqtt.client as mqtt

    from hydra.system.run_certificates import RunAuthority

_FORGET_WITHIN_S: Final = 5.0
_SERVED_EVERY_S: Final = 1.0


class SingleServer:
    """A single mosquitto, local or on an agent; it forms no clusters. See :class:`hydra.system.ServerCluster`.

    Arguments:
        join: the server's limits for one client.
        authority: the CA of the server's certificate; None: it uses no TLS.
    """

    def __init__(self, join: MosquittoJoin, authority: RunAuthority | None = None) -> None:
        self._join = join
        self._authority = authority

    def join(self, endpoints: Sequence[str]) -> list[dict[str, Any] | None]:
        """The limits for each server, and its certificate."""
        certificates = [self._authority.server(each) if self._authority else None for each in endpoints]
        return [msgspec.to_builtins(msgspec.structs.replace(self._join, tls=tls)) for tls in certificates]

    def address(self, endpoints: Sequence[str]) -> str:
        """The endpoint of the only server."""
        return endpoints[0]

    def up(self, address: str) -> bool:
        """Whether the server accepts a client."""
        with contextlib.suppress(OSError):
            reach(access_to(address, self._authority))
            return True
        return False

    def warm_up(self, address: str) -> None:
        """Does nothing: mosquitto needs no warm-up."""


def access_to(endpoint: str, authority: RunAuthority | None = None) -> MqttAccess:
    """How a server of Hydra is reached, whose certificate this CA has signed; None: it uses no TLS."""
    parts = FORM.read(endpoint)
    return MqttAccess(host=parts.host, port=parts.port, tls=authority.client if authority else None)


def reach(access: MqttAccess, protocol: Protocol = "3.1.1") -> None:
    """Connects to a server once, with this version of MQTT.

    Raises:
        AccessError: the server does not answer, or does not let the client in.
        OSError: the server rejects the client for another reason.
    """
    with contextlib.closing(MqttConnection.of_controller(access, protocol)):
        pass


class ConnectionMonitor:
    """A connection whose loss shows that the server is dead; arguments and exceptions are those of :func:`reach`."""

    def __init__(self, access: MqttAccess, protocol: Protocol = "3.1.1") -> None:
        self._connection = MqttConnection.of_controller(access, protocol)
        self._serving = threading.Lock()
        self._background = WorkerThread(idle=self._serve, every_s=_SERVED_EVERY_S)
        self._background.start()

    def _serve(self) -> None:
        """Keeps the connection alive, also between two calls of ``failure``."""
        with self._serving:
            self._connection.read_all()
            self._connection.write()

    def failure(self) -> str:
        """A text if the connection was lost, else ""; returns at once."""
        self._serve()
        lost = self._connection.lost
        return f"{self._connection.server} closed the connection: {lost}" if lost else ""

    def close(self) -> None:
        """Closes the connection."""
        self._background.close()
        with self._serving:
            self._connection.close()


def forget(access: MqttAccess, topic: str, protocol: Protocol = "3.1.1") -> int:
    """Makes the server delete its retained messages under a topic; returns their number.

    Raises:
        OSError: the server did not answer in time.
    """
    retained: list[str] = []
    marker, seen = f"{topic}/{secrets.token_hex(4)}", 0

    def note(message: mqtt.MQTTMessage) -> None:
        nonlocal seen
        seen += message.topic == marker
        if message.retain and message.payload:
            retained.append(message.topic)

    with contextlib.closing(MqttConnection.of_controller(access, protocol, note)) as connection:
        connection.subscribe([f"{topic}/#"], 0)
        # The server sends the retained messages before the marker, and handles publications in order.
        connection.publish(marker, b"", 0)
        connection.await_(lambda: seen == 1, _FORGET_WITHIN_S, "about retained messages")
        for one in retained:
            connection.publish(one, b"", 0, retain=True)
        connection.publish(marker, b"", 0)
        connection.await_(lambda: seen == 2, _FORGET_WITHIN_S, "about messages to be forgotten")
    return len(retained)


_ASK_WITHIN_S: Final = 10.0
_MOST_NAME: Final = 60

_T = TypeVar("_T")


class MqttSystem(ServerSystem):
    """See :class:`hydra.system.System`; without ``broker`` in the scenario, Hydra starts the server.

    Arguments as for :class:`hydra.system.server_system.ServerSystem`.
    """

    def __init__(self, scenario: Scenario, *, deploy: bool = False, is_local: bool = True) -> None:
        self._spec = spec_of(scenario)
        server = address(self._spec)
        where = server.endpoint if server else ""
        super().__init__(scenario, where, deploy=deploy, is_local=is_local, tls=self._spec.tls)
        self.servers = MqttServers(self)
        self._retained = False

    def program(self, role: Role) -> Program:
        """The program of the implementation that the scenario names."""
        if self._scenario.client == "native":
            tls = self._has_tls or uses_tls(self._spec)
            return Program(command("mqtt", role, self._scenario.native, tls=tls), {})
        return Program.of_module("hydra.mqtttest.paho_mqtt", kind_of("mqtt", role), libraries=("paho-mqtt",))

    def configure(self, settings: Settings) -> dict[str, Any]:
        """All settings of MQTT, the server's address, and the prefix of the topics."""
        self._retained = self._retained or MqttSettings.of(settings).retain
        access = {name: value for name, value in msgspec.to_builtins(self._access).items() if value}
        return {**settings.system.values(), **access, "topic": self._run}

    def proof(self, settings: Settings) -> Hashable:
        """The address, and all settings that make a subscriber connect again."""
        return self._address, replace(MqttSettings.of(settings), retain=False)

    def metadata(self) -> dict[str, str]:
        """The server, the prefix of the topics, and the version of a server that Hydra started."""
        return {"broker": self._address, "topic": self._run, **(self._own.versions if self._own else {})}

    def _unique(self, run: str) -> str:
        return f"hydra/{re.sub(r'[^A-Za-z0-9._-]', '-', run)[:_MOST_NAME]}-{secrets.token_hex(4)}"

    def _reach(self) -> None:
        try:
            for protocol in self._protocols:
                examine(self._access, self._scenario, protocol)
        except OSError as e:
            access, remedy = self._access, ""
            if isinstance(e, AccessError) and not (access.tls or access.websocket):
                server = f"the MQTT server at {self._users}"
                e = explained(e, (access.host, access.port), "MQTT", greetings(), server)
            if isinstance(e, AccessError):
                remedy = e.remedy
            raise UsageError(str(e), remedy or "check --servers, or leave it out: then Hydra starts a server") from None

    def _server_program(self) -> MosquittoProgram:
        return MosquittoProgram()

    def _server_node(self) -> Program:
        return Program.of_module("hydra.mqtttest.server_main", KIND)

    def _server_cluster(self) -> SingleServer:
        most = most_in_flight(self._scenario)
        queued = self._spec.max_queued_messages
        join = MosquittoJoin(max_queued_messages=queued, max_inflight_messages=most)
        return SingleServer(join, self._authority)

    @property
    def _access(self) -> MqttAccess:
        """How the present server is reached."""
        return self._given if self._users else access_to(self._address, self._authority)

    @cached_property
    def _given(self) -> MqttAccess:
        return access_of(self._spec)

    @property
    def _protocols(self) -> Sequence[Protocol]:
        """The versions of MQTT that the run speaks."""
        found = self._scenario.values_of("protocol")
        return [each for each in get_args(Protocol) if each in found]

    def _observed(self) -> ConnectionMonitor:
        return self._on_a_thread(partial(ConnectionMonitor, self._access, self._protocols[0]))

    def _disconnect(self) -> None:
        """Makes the user's server delete the retained messages of this run."""
        if not self.servers.left():
            return
        try:
            self._on_a_thread(partial(forget, self._access, self._run, self._protocols[0]))
        except ServerError:
            self._warnings += self.servers.left()
        finally:
            self._retained = False

    def _on_a_thread(self, question: Callable[[], _T]) -> _T:
        """Calls the server on a separate thread, and returns its answer.

        Raises:
            ServerError: the server does not answer.
        """
        with contextlib.closing(WorkerThread(self._wait)) as background:
            try:
                return background.ask(question, _ASK_WITHIN_S)
            except OSError as e:
                remedy = e.remedy if isinstance(e, AccessError) else ""
                raise ServerError(str(e) or f"the MQTT server at {self._address} does not answer", remedy) from e


class MqttServers(SystemServers[MqttSystem]):
    """The server of a run. See :class:`hydra.system.RunServers`."""

    def facts(self) -> ServerFacts:
        """The version of a server that Hydra started, and whether clients use TLS."""
        return replace(super().facts(), tls=self._system._has_tls or uses_tls(self._system._spec))

    def connections(self) -> int:
        """That of the monitor."""
        return int(self._system._monitor is not None)

    def left(self) -> list[CleanupFailed]:
        """The retained messages of this run on the user's server, if they are not deleted."""
        run, address = self._system._run, self._system._address
        if not (self._system._retained and self._system._users and address):
            return []
        host, _, port = address.rpartition(":")
        topics, at = quote(f"{run}/#"), f"-h {quote(host.strip('[]'))} -p {port}"
        clean = f"mosquitto_sub {at} -t {topics} --remove-retained --retained-only -W 5 removes them"
        return [CleanupFailed(f"retained messages under {run}", address, clean)]
