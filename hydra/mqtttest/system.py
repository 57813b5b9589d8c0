"""MQTT as a system under test: a server of our own or the user's, and the run's topics on it."""

from __future__ import annotations

import contextlib
import re
import secrets
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from hydra.errors import ServerError, UsageError
from hydra.events.warnings import HydraWarning, LeftBehind
from hydra.model import Role, Scenario, Settings
from hydra.mqtttest.address import split
from hydra.mqtttest.broker import forget, reach, watch
from hydra.mqtttest.connection import Connection
from hydra.mqtttest.program import KIND, MosquittoProgram, ServerLimits, find, version_of
from hydra.mqtttest.settings import MqttSettings, most_in_flight, password_of, spec_of
from hydra.mqtttest.single_server import SingleServer
from hydra.native.command import command
from hydra.system import Program, ServerCluster, Servers, Waiting, wait_alone
from hydra.system.embedded_server import EmbeddedServer
from hydra.system.server_recovery import await_return, unused_folder
from hydra.system.worker_thread import Background
from hydra.wire.protocol_constants import kind_of

CLEAN: Final = "mosquitto_sub --remove-retained removes them"
_ASK_WITHIN_S: Final = 10.0
_MOST_NAME: Final = 60

_T = TypeVar("_T")


class MqttSystem:
    """See :class:`hydra.system.System`; without ``broker`` in the scenario the server is ours.

    Args:
        scenario: what is run.
        deploy: whether it runs as a group on an agent; otherwise it is embedded.
        is_local: whether it runs on this machine.
    """

    def __init__(self, scenario: Scenario, *, deploy: bool = False, is_local: bool = True) -> None:
        self._scenario = scenario
        self._spec = spec_of(scenario)
        self._deploy = deploy
        self._is_local = is_local
        self._deployed: Servers | None = None
        self._server: Servers | None = None
        self._address = ""
        self._password = ""
        self._topic = ""
        self._folder = Path()
        self._wait: Waiting = wait_alone
        self._watch: Connection | None = None
        self._retained = False
        self._warnings: list[HydraWarning] = []

    def check(self) -> None:
        """The clients' program is there; the user's server lets us in, or ours is installed if it runs here."""
        self.program("subscriber")
        password = password_of(self._spec)
        if self._spec.broker:
            try:
                reach(self._spec.broker, self._spec.username, password)
            except OSError as e:
                raise UsageError(str(e), "look at --broker, or leave it out for a server of Hydra's own") from e
        elif self._is_local:
            version_of(find())

    def open(self, run: str, folder: Path, wait: Waiting, servers: Servers | None = None) -> None:
        """Starts the server or reaches the user's."""
        # The suffix keeps two runs of the same name on one server apart.
        name = re.sub(r"[^A-Za-z0-9._-]", "-", run)[:_MOST_NAME]
        self._topic = f"hydra/{name}-{secrets.token_hex(4)}"
        self._password = password_of(self._spec)
        self._folder = folder
        self._wait = wait
        self._deployed = servers
        self._bring_up()

    def _bring_up(self) -> None:
        if self._spec.broker:
            self._address = self._spec.broker
        else:
            free = unused_folder(self._folder, "server")
            self._server = self._deployed or EmbeddedServer(MosquittoProgram(), self._alone(), free, wait=self._wait)
            self._address = self._server.start()
        self._watch = self._asked(partial(watch, self._address, self._spec.username, self._password))

    def _asked(self, question: Callable[[], _T], within_s: float = _ASK_WITHIN_S) -> _T:
        """The server's answer, waited for on a thread.

        Raises:
            ServerError: there is none.
        """
        with contextlib.closing(Background(self._wait)) as background:
            try:
                return background.ask(question, within_s)
            except OSError as e:
                raise ServerError(str(e) or f"the MQTT server at {self._address} does not answer") from e

    def _alone(self) -> SingleServer:
        return SingleServer(
            ServerLimits(
                max_queued_messages=self._spec.max_queued_messages,
                max_inflight_messages=most_in_flight(self._scenario),
            )
        )

    def program(self, role: Role) -> Program:
        """The client that the scenario names."""
        if self._scenario.client == "native":
            return Program(command("mqtt", role, self._scenario.native), {})
        return Program.of_module("hydra.mqtttest.paho_mqtt", kind_of("mqtt", role), libraries=("paho-mqtt",))

    def server(self) -> Program | None:
        """A mosquitto, which has to be installed on the agent."""
        if not self._deploy:
            return None
        return Program.of_module("hydra.mqtttest.server_main", KIND)

    def cluster(self) -> ServerCluster | None:
        """There is one server only."""
        return self._alone() if self._deploy else None

    def configure(self, settings: Settings) -> dict[str, Any]:
        """All settings of MQTT, the server's address, and what the topics begin with."""
        self._retained = self._retained or MqttSettings.of(settings).retain
        host, port = split(self._address)
        return {
            **settings.system,
            "host": host,
            "port": port,
            "topic": self._topic,
            "username": self._spec.username,
            "password": self._password,
        }

    def finish(self) -> None:
        """Nobody knows where a topic's data ends but its publisher."""

    def proof(self, settings: Settings) -> Hashable:
        """The address and whatever makes a subscriber connect anew."""
        own = {name: value for name, value in settings.system.items() if name != "retain"}
        return (self._address, tuple(sorted(own.items())))

    def log_end(self, settings: Settings) -> None:
        """Nobody keeps a log."""

    def during(self, settings: Settings, elapsed_s: float, duration_s: float) -> None:
        """Nothing happens on purpose."""

    def after_step(self) -> None:
        """Nothing was broken on purpose."""

    def server_counters(self) -> dict[str, dict[str, float]]:
        """Nobody tells."""
        return {}

    def server_processes(self) -> Sequence[int]:
        """Of an embedded server."""
        return self._server.processes() if self._server else ()

    def failure(self) -> str:
        """That our server's process ended, or that the connection to it was lost."""
        failure = self._server.failure() if self._server else ""
        if not failure and self._watch is not None:
            while self._watch.read():
                pass
            if self._watch.lost:
                failure = f"the MQTT server at {self._address} closed the connection: {self._watch.lost}"
        return failure

    def revive(self) -> None:
        """A new server in the place of our own that failed; the user's is waited for.

        Raises:
            ServerError: the user's did not answer within ``COMES_BACK_WITHIN_S``, or ``ready_timeout_s`` where that is
                less.
        """
        if not self.failure():
            return
        if self._server is not None:
            self._take_down()
            self._bring_up()
            return
        self._unwatch()
        await_return(self._bring_up, self._wait, self._scenario.ready_timeout_s)

    def stored_bytes(self) -> int:
        """Nothing is stored on disk."""
        return 0

    def warnings(self) -> list[HydraWarning]:
        """Messages that may be left on the user's server."""
        warnings, self._warnings = self._warnings, []
        return warnings

    def metadata(self) -> dict[str, str]:
        """Where the data goes, and the version of a server of ours."""
        metadata = {"broker": self._address, "topic": self._topic}
        return metadata | dict(self._server.versions) if self._server is not None else metadata

    def close(self) -> None:
        """Ends our server, or has the user's forget what it retains of this run."""
        if self._retained and self._spec.broker and self._address:
            self._retained = False
            try:
                self._asked(partial(forget, self._address, self._topic, self._spec.username, self._password))
            except (ServerError, TimeoutError):
                self._warnings.append(LeftBehind(f"retained messages under {self._topic}", self._address, CLEAN))
        self._take_down()

    def _take_down(self) -> None:
        self._unwatch()
        server, self._server = self._server, None
        if server is not None:
            server.stop()

    def _unwatch(self) -> None:
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.close()
