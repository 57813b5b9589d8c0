"""Forked processes with a socket of pyzmq each, until each has had a first message.

    python -m bench.clients.pyzmq_start CLIENTS [hold]

With ``hold`` the processes stay until standard input ends.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Final, NoReturn

import zmq

from hydra.client.linux_process import die_with_parent

COMMAND: Final = (sys.executable, "-m", "bench.clients.pyzmq_start")
_ENDPOINT_BYTES: Final = 64


def subscribe(endpoints: int, heard: int, *, holds: bool) -> NoReturn:
    """Receives one message, and reports that by a byte."""
    endpoint = os.read(endpoints, _ENDPOINT_BYTES).decode().rstrip()
    socket = zmq.Context(io_threads=1).socket(zmq.SUB)
    socket.subscribe(b"")
    socket.connect(endpoint)
    socket.recv()
    os.write(heard, b".")
    while holds:
        time.sleep(1.0)
    os._exit(0)


def main(clients: int, *, holds: bool) -> None:
    """Forks, and publishes until all processes have reported."""
    parent, endpoints, heard = os.getpid(), os.pipe(), os.pipe()
    for _ in range(clients):
        if not os.fork():
            die_with_parent(parent)
            subscribe(endpoints[0], heard[1], holds=holds)
    socket = zmq.Context(io_threads=1).socket(zmq.XPUB)
    socket.backlog = 4096
    socket.sndhwm = 100_000
    socket.bind("tcp://127.0.0.1:*")
    endpoint = socket.getsockopt_string(zmq.LAST_ENDPOINT).ljust(_ENDPOINT_BYTES)
    for _ in range(clients):
        os.write(endpoints[1], endpoint.encode())
    os.set_blocking(heard[0], False)
    while clients:
        socket.send(bytes(24))
        try:
            clients -= len(os.read(heard[0], clients))
        except BlockingIOError:
            time.sleep(0.001)
    if holds:
        print("held", flush=True)
        sys.stdin.read()
    os._exit(0)  # without the goodbye of sockets


if __name__ == "__main__":
    main(int(sys.argv[1]), holds=sys.argv[2:] == ["hold"])
