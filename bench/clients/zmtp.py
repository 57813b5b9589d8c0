"""ZeroMQ: Hydra's clients of one packed process beside TCP sockets, and latency beside libzmq and pyzmq.

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


def packed(subscribers: int) -> Workload:
    """As many messages as possible to subscribers of one process, each with its own connection."""
    own = {"native.clients_per_process": subscribers}
    return Workload("zmqfixed", "zmtp", subscribers, HEADER_BYTES, settings=own)


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
    while True:
        tally.late(socket.recv())


def publish(settings: dict[str, Any], begin: Callable[[], forks.Interval]) -> int:
    """Waits for all subscriptions, and sends each message when it is due."""
    socket = zmq.Context(io_threads=1).socket(zmq.XPUB)
    socket.sndhwm = settings["sndhwm"]
    socket.linger = 0
    socket.setsockopt(zmq.XPUB_VERBOSE, 1)
    socket.bind(settings["endpoint"])
    for _ in range(settings["subscribers"]):
        socket.recv()
    sent = 0
    for message in begin().due(settings["rate"], settings["size"]):
        socket.send(message, zmq.NOBLOCK)
        sent += 1
    return sent


if __name__ == "__main__":
    forks.run(receive, publish)
