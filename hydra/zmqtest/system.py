"""Raw ZMQ PUB/SUB as a system under test: no server, only clients."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from pathlib import Path
from typing import Any

import zmq

from hydra.events.warnings import HydraWarning
from hydra.model import Role, Scenario, Settings
from hydra.native.command import command
from hydra.system import Program, Servers, Waiting
from hydra.wire.protocol_constants import kind_of
from hydra.zmqtest.footprints import NATIVES, ZMTP


class ZmqSystem:
    """The raw baseline; see :class:`hydra.system.System`."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._keys: tuple[str, str] | None = None

    def check(self) -> None:
        """The native client is built, if it is asked for; pyzmq is a dependency of ours."""
        self.program("subscriber")

    def open(self, run: str, folder: Path, wait: Waiting, servers: Servers | None = None) -> None:
        """Nothing to bring up."""

    def program(self, role: Role) -> Program:
        """The client that the scenario names."""
        client, native = self._scenario.client, self._scenario.native
        if client == ZMTP and role == "subscriber":
            own = {"zmtp_rcvbuf": native.system["rcvbuf"]}
            return Program(command(ZMTP, role, replace(native, system=own)), {})
        if client in NATIVES and (role == "subscriber" or native.system["publisher"] == "native"):
            own = {name: value for name, value in native.system.items() if name != "publisher"}
            return Program(command("zmq", role, replace(native, system=own)), self._data_keys(role))
        return Program.of_module("hydra.zmqtest.pyzmq", kind_of("zmq", role))

    def server(self) -> None:
        """There are only clients."""

    def cluster(self) -> None:
        """There are only clients."""

    def _data_keys(self, role: Role) -> dict[str, str]:
        """CURVE keys of the data plane, made for this run; subscribers get the public one only."""
        if not self._scenario.native.system.get("secure"):
            return {}
        if self._keys is None:
            public, secret = zmq.curve_keypair()
            self._keys = (public.decode(), secret.decode())
        keys = {"HYDRA_DATA_SERVER_KEY": self._keys[0]}
        return {**keys, "HYDRA_DATA_SERVER_SECRET": self._keys[1]} if role == "publisher" else keys

    def configure(self, settings: Settings) -> dict[str, Any]:
        """High-water marks, as far as the clients have them, and what happens at the publisher's."""
        left_out = {"subscriptions", *(["rcvhwm"] if self._scenario.client == ZMTP else [])}
        return {name: value for name, value in settings.system.items() if name not in left_out}

    def finish(self) -> None:
        """Only publishers know where their data ends."""

    def proof(self, settings: Settings) -> Hashable:
        """All of them: each rebuilds sockets."""
        return tuple(sorted(settings.system.items()))

    def log_end(self, settings: Settings) -> None:
        """There is no log."""

    def during(self, settings: Settings, elapsed_s: float, duration_s: float) -> None:
        """Nothing happens on purpose."""

    def after_step(self) -> None:
        """Nothing was broken on purpose."""

    def server_counters(self) -> dict[str, dict[str, float]]:
        """Nobody tells."""
        return {}

    def server_processes(self) -> tuple[int, ...]:
        """There are only clients."""
        return ()

    def failure(self) -> str:
        """There is nothing that could fail but clients."""
        return ""

    def revive(self) -> None:
        """Nothing to revive."""

    def stored_bytes(self) -> int:
        """Nothing is stored."""
        return 0

    def metadata(self) -> dict[str, str]:
        """The library's version."""
        return {"libzmq": zmq.zmq_version()}

    def warnings(self) -> list[HydraWarning]:
        """There is nothing to tell."""
        return []

    def close(self) -> None:
        """Nothing to remove."""
