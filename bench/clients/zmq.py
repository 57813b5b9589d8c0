"""ZeroMQ: Hydra's clients beside bare loops of libzmq and pyzmq, and those of one packed process beside TCP sockets.

As a program: the bare loop of pyzmq.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import zmq

from bench import programs
from bench.clients import forks
from bench.clients.channel import Sides, Workload, words
from hydra.client.server_interface import free_ports
from hydra.model import HEADER_BYTES, Rate

HWM: Final = 1000
"""Both high-water marks of both sides."""
_MARKS: Final = {"settings.sndhwm": HWM, "settings.rcvhwm": HWM}


def fastest(client: str, subscribers: int, size: int = HEADER_BYTES) -> Workload:
    """As many messages as possible; clients of ``zmtp`` are in one process, each with its own connection.

    Args:
        client: ``native``, ``pyzmq`` or ``zmtp``.
        subscribers: the number of subscribers.
        size: bytes of a message.
    """
    if client == "zmtp":
        return Workload("zmqfixed", client, subscribers, size, settings={"native.clients_per_process": subscribers})
    return Workload("zmqfixed", client, subscribers, size, seconds=2.0, settings=_MARKS, warm_s=1.0)


def paced(client: str, subscribers: int, rate: Rate, seconds: float) -> Workload:
    """Messages at a fixed rate."""
    return Workload("zmqfixed", client, subscribers, HEADER_BYTES, rate, seconds)


def _command(client: str, values: Mapping[str, Any]) -> Sequence[str]:
    if client == "pyzmq":
        (port,) = free_ports("127.0.0.1", 1)
        return [sys.executable, "-m", __name__, forks.encoded({**values, "endpoint": f"tcp://127.0.0.1:{port}"})]
    return words(programs.bare("zmq/bare-zmq"), {**values, "hwm": values["sndhwm"], "sockets": int(client == "zmtp")})


SIDES: Final = Sides(_command)


# --- the bare loop of pyzmq ------------------------------------------------------------------------------------------


def receive(settings: dict[str, Any], tally: forks.Tally, subscribed: Callable[[], None]) -> None:
    """Receives one message after the other."""
    socket = zmq.Context(io_threads=1).socket(zmq.SUB)
    socket.rcvhwm = settings["sndhwm"]
    socket.subscribe(b"")
    socket.connect(settings["endpoint"])
    subscribed()
    while settings["rate"]:
        tally.late(socket.recv())
    while True:
        for _ in range(forks.AT_ONCE):
            socket.recv()
        tally.messages += forks.AT_ONCE


def publish(settings: dict[str, Any], begin: Callable[[], forks.Interval]) -> int:
    """Waits for all subscriptions, and sends each message when it is due, or as many as possible."""
    socket = zmq.Context(io_threads=1).socket(zmq.XPUB)
    socket.sndhwm = settings["sndhwm"]
    socket.linger = 0
    socket.backlog = 4096
    socket.setsockopt(zmq.XPUB_VERBOSE, 1)
    socket.bind(settings["endpoint"])
    for _ in range(settings["subscribers"]):
        socket.recv()
    window, sent = begin(), 0
    if settings["rate"]:
        for message in window.due(settings["rate"], settings["size"]):
            socket.send(message, zmq.NOBLOCK)
            sent += 1
        return sent
    message = bytes(settings["size"])
    for _ in window.rounds():
        for _ in range(forks.AT_ONCE):
            socket.send(message, zmq.NOBLOCK)
        sent += forks.AT_ONCE
    return sent


if __name__ == "__main__":
    forks.run(receive, publish)
