"""Raw ZMQ PUB/SUB as a system under test, without servers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import zmq

from hydra.model import Role, Scenario, Settings
from hydra.native.client_command import command
from hydra.system import Program, System
from hydra.wire import kind_of
from hydra.zmqtest.settings import DATA_KEY, DATA_SECRET, NATIVES, ZMTP, ZmqNative


class ZmqSystem(System):
    """The raw baseline: Hydra depends on pyzmq, and a socket is made again if one of its settings changes."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._keys: tuple[str, str] | None = None

    def program(self, role: Role) -> Program:
        """The program of the implementation that the scenario names."""
        client, native = self._scenario.client, self._scenario.native
        own = ZmqNative.of(native)
        if client == ZMTP and role == "subscriber":
            return Program(command(ZMTP, role, native, {"zmtp_rcvbuf": own.rcvbuf}), {})
        if client in NATIVES and (role == "subscriber" or own.publisher == "native"):
            options = {name: value for name, value in own.values().items() if name != "publisher"}
            return Program(command("zmq", role, native, options), self._data_keys(role))
        program = Program.of_module("hydra.zmqtest.pyzmq", kind_of("zmq", role))
        return replace(program, environment={**program.environment, **self._data_keys(role)})

    def _data_keys(self, role: Role) -> dict[str, str]:
        """CURVE keys for the data messages, made for this run; subscribers get the public key only."""
        if not ZmqNative.of(self._scenario.native).secure:
            return {}
        if self._keys is None:
            public, secret = zmq.curve_keypair()
            self._keys = (public.decode(), secret.decode())
        keys = {DATA_KEY: self._keys[0]}
        return {**keys, DATA_SECRET: self._keys[1]} if role == "publisher" else keys

    def configure(self, settings: Settings) -> dict[str, Any]:
        """The settings of the clients' sockets: high-water marks that they have, and ``nodrop``."""
        left_out = {"subscriptions", *(["rcvhwm"] if self._scenario.client == ZMTP else [])}
        return {name: value for name, value in settings.system.values().items() if name not in left_out}

    def metadata(self) -> dict[str, str]:
        """The library's version."""
        return {"libzmq": zmq.zmq_version()}
