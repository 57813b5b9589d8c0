"""A host whose clock is made up: a relay with one client that speaks the protocol over a real socket."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Final

import zmq

from hydra.control import curve_security
from hydra.wire.messages import Ack, Ping, decode_from_controller, encode
from tests.channel import joined
from tests.control.rosters import hello
from tests.control.simulated_clocks import Clock
from tests.suite.waiting import SOON_S
from tests.truth.priority import first_thread

_LOOK_EVERY_MS: Final = 100


class SimulatedHost:
    """Group ``name`` of one client, on a host of that boot id, whose CLOCK_MONOTONIC is ``clock``'s.

    The truth is known: ``clock`` has its difference from this machine's CLOCK_MONOTONIC, the controller's.

    Args:
        environment: what a group has of the controller.
        endpoint: where it dials in.
    """

    def __init__(self, name: str, client: int, clock: Clock, environment: Mapping[str, str], endpoint: str) -> None:
        self._clock = clock
        self._client = client
        self._name = name
        self._environment = environment
        self._endpoint = endpoint
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """It falls silent."""
        self._closing.set()
        self._thread.join(SOON_S)

    def _run(self) -> None:
        first_thread()
        context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        try:
            socket = self._introduce(context)
            self._answer(socket)
        finally:
            context.destroy(linger=0)

    def _introduce(self, context: zmq.Context[zmq.Socket[bytes]]) -> zmq.Socket[bytes]:
        socket = context.socket(zmq.DEALER)
        socket.curve_serverkey = self._environment[curve_security.SERVER_KEY].encode()
        socket.curve_publickey = self._environment[curve_security.CLIENT_KEY].encode()
        socket.curve_secretkey = self._environment[curve_security.CLIENT_SECRET].encode()
        socket.connect(self._endpoint)
        name = self._name
        socket.send(encode(hello([self._client], group=name, boot_id=name, host=name)))
        socket.send(encode(joined([self._client])))
        return socket

    def _answer(self, socket: zmq.Socket[bytes]) -> None:
        """Answers pings, as relays do."""
        seq = 2
        while not self._closing.is_set():
            if not socket.poll(_LOOK_EVERY_MS):
                continue
            message = decode_from_controller(socket.recv())
            if isinstance(message, Ping) and message.reply:
                seq += 1
                shown_ns = self._clock.shows(time.monotonic_ns())
                ids, echo = [self._client], message.time_ns
                socket.send(encode(Ack(ids=ids, seq=seq, epoch=0, command="ping", time_ns=shown_ns, echo=echo)))
