"""A bare publisher and forked subscribers of pyzmq that only count.

Run: python -m bench.clients.pyzmq_loop SUBSCRIBERS MESSAGE_BYTES WARM_SECONDS SECONDS HWM

It prints the messages/s that all subscribers received together in the window, and what a message took of a subscriber's
CPU (µs).
"""

from __future__ import annotations

import mmap
import os
import sys
import time
from typing import Final, NamedTuple, NoReturn

import zmq

from hydra.client.linux_process import die_with_parent

BETWEEN_LOOKS: Final = 1000
"""Messages that a subscriber takes before it looks at the clock."""
BURST: Final = 100
"""Messages that the publisher sends before it looks at the clock."""


class Asked(NamedTuple):
    """The arguments."""

    subscribers: int
    message_bytes: int
    warm_s: float
    seconds: float
    hwm: int


class Window:
    """When the subscribers count, and what each of them has counted, in memory that all of them share."""

    def __init__(self, subscribers: int) -> None:
        self._cells = memoryview(mmap.mmap(-1, 8 * (1 + 2 * subscribers))).cast("q")

    @property
    def stop_ns(self) -> int:
        """The end, CLOCK_MONOTONIC; 0 before it begins."""
        return self._cells[0]

    def begin(self, seconds: float) -> int:
        """Begins now; returns when it ends."""
        self._cells[0] = time.monotonic_ns() + int(seconds * 1e9)
        return self._cells[0]

    def count(self, subscriber: int, messages: int, cpu_ns: int) -> None:
        """Stores what that subscriber has received in the window, and the CPU that it took."""
        self._cells[1 + 2 * subscriber], self._cells[2 + 2 * subscriber] = messages, cpu_ns

    def total(self) -> tuple[int, int]:
        """Messages and nanoseconds of CPU of all subscribers."""
        return sum(self._cells[1::2]), sum(self._cells[2::2])


def subscribe(window: Window, number: int, endpoint: str, hwm: int) -> NoReturn:
    """Counts until the window ends."""
    socket = zmq.Context(io_threads=1).socket(zmq.SUB)
    socket.rcvhwm = hwm
    socket.rcvtimeo = 100
    socket.subscribe(b"")
    socket.connect(endpoint)
    received = began_ns = 0
    while True:
        some = 0
        try:
            while some < BETWEEN_LOOKS:
                socket.recv()
                some += 1
        except zmq.Again:
            pass
        stop_ns = window.stop_ns
        if stop_ns and time.monotonic_ns() > stop_ns:
            break
        if stop_ns:
            began_ns = began_ns or time.process_time_ns()
            received += some
    window.count(number, received, time.process_time_ns() - began_ns)
    os._exit(0)


def publish_until(socket: zmq.Socket[bytes], stop_ns: int, message: bytes) -> None:
    """Sends as fast as it can."""
    while time.monotonic_ns() < stop_ns:
        for _ in range(BURST):
            socket.send(message, zmq.NOBLOCK)


def measure(asked: Asked) -> tuple[float, float]:
    """Messages/s of all subscribers together, and µs of CPU of each message."""
    window = Window(asked.subscribers)
    pipes = [os.pipe() for _ in range(asked.subscribers)]
    parent = os.getpid()
    children = []
    for number in range(asked.subscribers):
        pid = os.fork()
        if pid == 0:
            die_with_parent(parent)
            subscribe(window, number, os.read(pipes[number][0], 100).decode(), asked.hwm)
        children.append(pid)
    socket = zmq.Context(io_threads=1).socket(zmq.XPUB)
    socket.sndhwm = asked.hwm
    socket.linger = 0
    socket.backlog = 4096
    socket.setsockopt(zmq.XPUB_VERBOSE, 1)
    socket.bind("tcp://127.0.0.1:*")
    for _, address in pipes:
        os.write(address, socket.getsockopt_string(zmq.LAST_ENDPOINT).encode())
    for _ in range(asked.subscribers):
        socket.recv()
    message = bytes(asked.message_bytes)
    publish_until(socket, time.monotonic_ns() + int(asked.warm_s * 1e9), message)
    publish_until(socket, window.begin(asked.seconds), message)
    for pid in children:
        os.waitpid(pid, 0)
    messages, cpu_ns = window.total()
    return messages / asked.seconds, cpu_ns / 1e3 / max(messages, 1)


if __name__ == "__main__":
    subscribers, message_bytes, warm_s, seconds, hwm = sys.argv[1:]
    print(*measure(Asked(int(subscribers), int(message_bytes), float(warm_s), float(seconds), int(hwm))))
