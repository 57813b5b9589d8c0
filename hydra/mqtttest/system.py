"""MQTT as a system under test: a server of our own or the user's, and the run's topics on it."""

from __future__ import annotations

import contextlib
import re
import secrets
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, Final, TypeVar

from hydra.errors import ServerError, UsageError
from hydra.events.warnings import LeftBehind
from hydra.model import Role, Scenario, Settings
from hydra.mqtttest.broker import ConnectionMonitor, SingleServer, forget, reach
from hydra.mqtttest.program import KIND, MosquittoProgram, ServerLimits
from hydra.mqtttest.settings import MqttSettings, most_in_flight, password_of, spec_of, split
from hydra.native.command import command
from hydra.system import Program
from hydra.system.server_system import ServerSystem
from hydra.system.worker_thread import Background
from hydra.wire.protocol_constants import kind_of

CLEAN: Final = "mosquitto_sub --remove-retained removes them"
_ASK_WITHIN_S: Final = 10.0
_MOST_NAME: Final = 60

_T = TypeVar("_T")


class MqttSystem(ServerSystem):
    """See :class:`hydra.system.System`; without ``broker`` in the scenario the server is ours.

    Arguments as for :class:`hydra.system.server_system.ServerSystem`.
    """

    def __init__(self, scenario: Scenario, *, deploy: bool = False, is_local: bool = True) -> None:
        self._spec = spec_of(scenario)
        super().__init__(scenario, self._spec.broker, deploy=deploy, is_local=is_local)
        self._password = ""
        self._retained = False

    def program(self, role: Role) -> Program:
        """The client that the scenario names."""
        if self._scenario.client == "native":
            return Program(command("mqtt", role, self._scenario.native), {})
        return Program.of_module("hydra.mqtttest.paho_mqtt", kind_of("mqtt", role), libraries=("paho-mqtt",))

    def configure(self, settings: Settings) -> dict[str, Any]:
        """All settings of MQTT, the server's address, and what the topics begin with."""
        self._retained = self._retained or MqttSettings.of(settings).retain
        host, port = split(self._address)
        return {
            **settings.system,
            "host": host,
            "port": port,
            "topic": self._run,
            "username": self._spec.username,
            "password": self._password,
        }

    def proof(self, settings: Settings) -> Hashable:
        """The address and whatever makes a subscriber connect anew."""
        own = {name: value for name, value in settings.system.items() if name != "retain"}
        return (self._address, tuple(sorted(own.items())))

    def metadata(self) -> dict[str, str]:
        """Where the data goes, and the version of a server of ours."""
        return {"broker": self._address, "topic": self._run, **(self._own.versions if self._own else {})}

    def _unique(self, run: str) -> str:
        return f"hydra/{re.sub(r'[^A-Za-z0-9._-]', '-', run)[:_MOST_NAME]}-{secrets.token_hex(4)}"

    def _reach(self) -> None:
        try:
            reach(self._spec.broker, self._spec.username, password_of(self._spec))
        except OSError as e:
            raise UsageError(str(e), "look at --broker, or leave it out for a server of Hydra's own") from e

    def _server_program(self) -> MosquittoProgram:
        return MosquittoProgram()

    def _server_node(self) -> Program:
        return Program.of_module("hydra.mqtttest.server_main", KIND)

    def _server_cluster(self) -> SingleServer:
        most = most_in_flight(self._scenario)
        queued = self._spec.max_queued_messages
        return SingleServer(ServerLimits(max_queued_messages=queued, max_inflight_messages=most))

    def _connect(self) -> None:
        self._password = password_of(self._spec)
        self._watch()

    def _observed(self) -> ConnectionMonitor:
        return self._on_a_thread(partial(ConnectionMonitor, self._address, self._spec.username, self._password))

    def _disconnect(self) -> None:
        """Has the user's server forget what it retains of this run."""
        if self._retained and self._theirs and self._address:
            self._retained = False
            try:
                self._on_a_thread(partial(forget, self._address, self._run, self._spec.username, self._password))
            except ServerError:
                self._warnings.append(LeftBehind(f"retained messages under {self._run}", self._address, CLEAN))

    def _on_a_thread(self, question: Callable[[], _T]) -> _T:
        """The server's answer.

        Raises:
            ServerError: there is none.
        """
        with contextlib.closing(Background(self._wait)) as background:
            try:
                return background.ask(question, _ASK_WITHIN_S)
            except OSError as e:
                raise ServerError(str(e) or f"the MQTT server at {self._address} does not answer") from e
